"""One medic on real sockets, with a launcher that only remembers."""

import asyncio
from collections.abc import Awaitable, Callable, Container, Iterator, Sequence
from pathlib import Path

import pytest
from tests.harness.cluster_folder import laid_out

from caudal.cluster.folder import Cluster
from caudal.cluster.roster import Member
from caudal.medic.service import Medic
from caudal.process.heart import Heart
from caudal.process.pulse import HostRecord, Pulse
from caudal.process.ticks import Tick


class NobodyToStart:
    """A launcher that only remembers."""

    def __init__(self) -> None:
        self.started: list[tuple[str, int]] = []

    def start(self, member: Member, dead: int) -> int | None:
        self.started.append((member.name, dead))
        return dead + 1

    def replace(self, member: Member, seconds: float) -> int | None:
        raise AssertionError("no medic replaces anybody")

    def stop(self, name: str, seconds: float) -> None: ...

    def kill(self, name: str) -> bool:
        return False

    def pause(self, name: str) -> bool:
        return False

    def create(self, member: Member) -> None: ...

    def remove(self, name: str) -> None: ...

    def log_lines(self, name: str, count: int, *, follow: bool = False) -> Iterator[str]:
        return iter(())

    def keep_logs_short(self) -> None: ...

    def trouble(self) -> str:
        return ""

    def record(self, name: str) -> HostRecord | None:
        return None

    def records(self, names: Sequence[str], closely: Container[str]) -> list[HostRecord]:
        return []

    def names(self) -> list[str]:
        return []

    def follow(self, cluster: Cluster) -> None: ...


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return laid_out(tmp_path, medics=1, workers=1)


@pytest.fixture
def medic(cluster: Cluster) -> Iterator[Medic]:
    me = next(one for one in cluster.here if one.name == "medic-1")
    heart = Heart(cluster.write_heart(me, 1))
    yield Medic(me, cluster, NobodyToStart(), heart)
    heart.close()


async def until(seen: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not seen():
            await asyncio.sleep(0.01)


def run(medic: Medic, story: Callable[[], Awaitable[None]]) -> None:
    async def both() -> None:
        stop = asyncio.Event()
        running = asyncio.create_task(medic.run(stop))
        try:
            await story()
        finally:
            stop.set()
            await running

    asyncio.run(both())


@pytest.fixture
def heart(cluster: Cluster) -> Iterator[Heart]:
    """That of the fourth incarnation of worker-1."""
    worker = next(one for one in cluster.here if one.name == "worker-1")
    heart = Heart(cluster.write_heart(worker, 4))
    yield heart
    heart.close()


def heard(medic: Medic) -> Pulse | None:
    return medic.ward.patients["worker-1"].pulse


async def beat_until_heard(heart: Heart, medic: Medic) -> Pulse:
    number = 0
    while (pulse := heard(medic)) is None:
        number += 1
        heart.beat(Tick(number, 0.0))
        await asyncio.sleep(0.05)
    return pulse
