"""The lock of a name: held by one process, looked at by others."""

import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from caudal.errors import UsageError
from caudal.process import locks
from caudal.process.locks import is_held, take_lock


def test_a_lock_is_held_until_it_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_PAUSE_SECONDS", 0.0)
    path = tmp_path / "worker-1.lock"
    assert not is_held(path)
    with closing(take_lock(path, "worker-1")):
        assert is_held(path)
        with pytest.raises(UsageError, match="another process already runs as worker-1"):
            take_lock(path, "worker-1")
    assert not is_held(path)


def test_many_looks_keep_nobody_from_taking_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "worker-1.lock"
    take_lock(path, "worker-1").close()
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            is_held(path)
            time.sleep(0)

    looking = [threading.Thread(target=look) for _ in range(2)]
    for one in looking:
        one.start()
    try:
        for _ in range(20):
            take_lock(path, "worker-1").close()
    finally:
        ended.set()
        for one in looking:
            one.join()
