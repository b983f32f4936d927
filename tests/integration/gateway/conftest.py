"""A place per test, closed behind it."""

from collections.abc import Iterator

import pytest
from tests.harness.gateway_place import Place


@pytest.fixture
def place() -> Iterator[Place]:
    with Place() as made:
        yield made
