"""A heart beats while its process loads, and says that it does."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from caudal.process.heart import LOADING_BEAT_SECONDS, Heart, Heartbeat, HeartFile, alive
from caudal.process.pulse import Pulse
from caudal.process.ticks import Tick
from caudal.process.wire import DIGEST_BYTES, make_secret


@pytest.fixture
def medic() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear:
        ear.bind(("127.0.0.1", 0))
        ear.settimeout(60)
        yield ear


@pytest.fixture
def path(tmp_path: Path, medic: socket.socket) -> Path:
    make_secret(tmp_path / "secret")
    where = medic.getsockname()
    file = HeartFile("worker-1", 3, str(tmp_path), str(tmp_path / "secret"), [where])
    (tmp_path / "worker-1.heart").write_bytes(msgspec.json.encode(file))
    return tmp_path / "worker-1.heart"


def heard(medic: socket.socket) -> Pulse:
    payload = medic.recv(10_000)[DIGEST_BYTES:]
    return msgspec.json.decode(payload, type=Heartbeat).pulse


def test_it_beats_while_it_loads_and_is_ready_afterwards(path: Path, medic: socket.socket) -> None:
    with contextlib.closing(Heart(path)) as heart:
        beats = heart.through(lambda: [heard(medic) for _ in range(3)])
        assert [(one.incarnation, one.ready) for one in beats] == [(3, False)] * 3
        assert heart.beat(Tick(1, 0.0)).ready


def test_a_load_without_end_falls_silent(path: Path, medic: socket.socket) -> None:
    enough = threading.Event()

    def load() -> int:
        heard(medic)
        heard(medic)
        medic.settimeout(1)
        with pytest.raises(TimeoutError):
            heard(medic)
        enough.set()
        return 7

    with contextlib.closing(Heart(path)) as heart:
        assert heart.through(load, most_seconds=0.5) == 7
    assert enough.is_set()


def test_a_load_that_fails_is_the_callers_to_judge(path: Path) -> None:
    def load() -> None:
        raise ValueError("no store")

    with contextlib.closing(Heart(path)) as heart:
        with pytest.raises(ValueError, match="no store"):
            heart.through(load)
        assert heart.beat(Tick(1, 0.0)).ready


def test_it_beats_while_it_waits_and_no_longer(path: Path, medic: socket.socket) -> None:
    with contextlib.closing(Heart(path)) as heart:
        asked: list[float] = []

        def ended(seconds: float) -> bool:
            asked.append(seconds)
            return len(asked) >= 3

        heart.awaiting(ended, 60.0)
        assert [(one.ready, one.ticks) for one in (heard(medic) for _ in asked)] == [
            (False, 1), (False, 2), (False, 3),
        ]  # fmt: skip
        asked.clear()
        heart.awaiting(ended, 2 * LOADING_BEAT_SECONDS)
        assert asked == [LOADING_BEAT_SECONDS] * 2, "its time was over"
        assert heart.beat(Tick(1, 0.0)).ready


def test_without_medics_there_is_no_heart(path: Path) -> None:
    with alive(None, "caudal.version") as heart:
        assert heart is None
    with alive(path, "caudal.version") as heart:
        assert heart is not None
