"""Unit tests start no process: one that tries fails, also if a library tries for it.

The interpreter reports every start to an audit hook. What a thread starts is not refused: it may
be one that an integration test of the same session left waiting for work. Matplotlib may ask for
the fonts of a machine on which it never ran.
"""

import sys
import threading
from collections.abc import Iterator

import pytest

FONTS = "fc-list"
STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}
_unit_test_runs = threading.Event()


def refuse(event: str, about: tuple[object, ...]) -> None:
    if event not in STARTS or not _unit_test_runs.is_set() or FONTS in str(about[:2]):
        return
    if threading.current_thread() is threading.main_thread():
        raise AssertionError(f"a unit test starts a process ({event}): see tests/integration")


sys.addaudithook(refuse)


@pytest.fixture(autouse=True)
def start_no_process() -> Iterator[None]:
    _unit_test_runs.set()
    yield
    _unit_test_runs.clear()
