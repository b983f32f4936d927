"""What a worker is told, and what follows."""

from pathlib import Path

import pytest

from caudal.errors import UsageError
from caudal.formats.keys import Lane
from caudal.formats.task_kinds import lanes_of
from caudal.worker.settings import WorkerSettings


def test_tasks_name_lanes() -> None:
    assert set(lanes_of("map,fold,finish,slow")) == set(Lane)
    assert lanes_of(" finish , fold") == (Lane.FOLD, Lane.FINISH)
    for wrong in ("", "merge", "map,", "map;fold"):
        with pytest.raises(UsageError, match="choose some of map,fold,finish"):
            lanes_of(wrong)


def test_a_quick_worker_takes_slow_tasks_last() -> None:
    assert WorkerSettings("w").turns() == (tuple(Lane), ())
    others = tuple(lane for lane in Lane if lane is not Lane.SLOW)
    assert WorkerSettings("w", quick=True).turns() == (others, (Lane.SLOW,))
    assert WorkerSettings("w", (Lane.FOLD,), quick=True).turns() == ((Lane.FOLD,), ())


def test_memory_is_shared_out() -> None:
    settings = WorkerSettings("w")
    limits = settings.limits(Path("/spill"))
    assert 128 << 20 <= limits.memory_bytes < settings.memory_bytes
    assert limits.spill == Path("/spill")
    assert settings.suspect_limits().memory_bytes == settings.memory_bytes
    with pytest.raises(UsageError, match="raise --memory-limit"):
        WorkerSettings("w", memory_bytes=100_000_000)
