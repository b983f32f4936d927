"""A place per test, closed behind it."""

from collections.abc import Iterator

import pytest
from tests.gateway.place import Place


@pytest.fixture
def place() -> Iterator[Place]:
    with Place() as made:
        yield made
