"""Tests on a real Docker engine: only `make test-docker` collects them."""

import os

collect_ignore_glob = [] if os.environ.get("CAUDAL_TEST_DOCKER") else ["test_*.py"]
