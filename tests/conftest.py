"""What all tests share: a deterministic hypothesis, and the way to the real data if it is there."""

import signal
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

from tests.harness.examples import TIMES

ROOT = Path(__file__).parents[1]

# A shell lets its background jobs ignore SIGINT, and so would every process that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Deterministic: the same examples in every run, so that a failure is never a matter of luck.
# `make properties` looks for new ones.
settings.register_profile("steady", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("steady" if TIMES == 1 else "explore")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as long the cases that `one_in` leaves out of `make test`."""
    cases = Counter[str]()
    for item in items:
        if (mark := item.get_closest_marker("one_in")) is not None:
            name, (every,) = item.nodeid.partition("[")[0], mark.args
            if cases[name] % every:
                item.add_marker("long")
            cases[name] += 1


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with real data beside the project; without it the test is skipped."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real data is not here")
    return folder
