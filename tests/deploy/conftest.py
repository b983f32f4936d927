"""Tests with programs that Caudal does not need itself: only `make test-deploy` collects them."""

import os

collect_ignore_glob = [] if os.environ.get("CAUDAL_TEST_DEPLOY") else ["test_*.py"]
