"""Strikes over HTTP, as a medic executes them: on a real process, and only where allowed."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import msgspec
import pytest

from caudal.cluster.folder import Cluster
from caudal.cluster.write_config import write_settings
from caudal.formats.medic_status import FaultKind
from caudal.medic.launcher import Launcher, LocalLauncher, locked
from caudal.medic.strikes import refusal_of_strike
from caudal.medic.talk import StrikeOrder
from caudal.process.pulse import HostRecord
from caudal.process.records import is_frozen, read_record, wait_until_gone, write_record

KILL = StrikeOrder("worker-1", 3, FaultKind.KILL)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    write_settings(tmp_path, broker="embedded", store=None, medics=None, gateways=None,
                   workers=None, port=None)  # fmt: skip
    found = Cluster.open(tmp_path)
    settings = msgspec.structs.replace(found.settings, chaos=True)
    found.run_folder.mkdir(parents=True)
    return Cluster(found.folder, settings, found.host)


@pytest.fixture
def victim(cluster: Cluster) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is on record as incarnation 3 of worker-1."""
    process = subprocess.Popen(["sleep", "600"])
    write_record(cluster.run_folder, "worker-1", 3, process.pid)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_kill(cluster: Cluster, victim: subprocess.Popen[bytes]) -> None:
    assert refusal_of_strike(cluster, LocalLauncher(cluster), KILL, "medic-1") == ""
    assert victim.wait() == -9
    assert "does not run" in refusal_of_strike(cluster, LocalLauncher(cluster), KILL, "medic-1")


def test_a_freeze(cluster: Cluster, victim: subprocess.Popen[bytes]) -> None:
    freeze = msgspec.structs.replace(KILL, fault=FaultKind.FREEZE)
    assert refusal_of_strike(cluster, LocalLauncher(cluster), freeze, "medic-1") == ""
    record = read_record(cluster.run_folder, "worker-1")
    assert record is not None
    while not is_frozen(record):
        assert not wait_until_gone(record, 0.01)


def test_nothing_happens_where_chaos_is_not_allowed(
    cluster: Cluster, victim: subprocess.Popen[bytes]
) -> None:
    usual = Cluster(
        cluster.folder, msgspec.structs.replace(cluster.settings, chaos=False), cluster.host
    )
    assert "chaos = true" in refusal_of_strike(usual, LocalLauncher(usual), KILL, "medic-1")
    assert victim.poll() is None


@pytest.mark.parametrize(
    "order",
    [
        msgspec.structs.replace(KILL, incarnation=2),  # one that is over
        msgspec.structs.replace(KILL, name="medic-1"),  # the medic itself
        msgspec.structs.replace(KILL, name="../worker-1"),  # no member
    ],
)
def test_only_the_named_incarnation_of_a_member(
    cluster: Cluster, victim: subprocess.Popen[bytes], order: StrikeOrder
) -> None:
    assert refusal_of_strike(cluster, LocalLauncher(cluster), order, "medic-1")
    assert victim.poll() is None


def test_no_strike_while_another_incarnation_is_started(
    cluster: Cluster, victim: subprocess.Popen[bytes]
) -> None:
    with locked(cluster.run_folder / "worker-1.starting"):
        told = refusal_of_strike(cluster, LocalLauncher(cluster), KILL, "medic-1")
    assert told == "worker-1 is being started"
    assert victim.poll() is None


class ContainersOfOne:
    """A launcher of one container, as the port describes it."""

    def __init__(self) -> None:
        self.struck: list[str] = []

    def record(self, name: str) -> HostRecord:
        return HostRecord(name, 3, 60.0, gone=False, stopped=bool(self.struck))

    def pause(self, name: str) -> bool:
        self.struck.append(f"pause {name}")
        return True

    def kill(self, name: str) -> bool:
        self.struck.append(f"kill {name}")
        return True


def test_a_container_is_struck_by_its_launcher(cluster: Cluster) -> None:
    settings = msgspec.structs.replace(cluster.settings, launcher="docker")
    containers = Cluster(cluster.folder, settings, cluster.host)
    launcher = ContainersOfOne()
    freeze = msgspec.structs.replace(KILL, fault=FaultKind.FREEZE)
    assert refusal_of_strike(containers, cast(Launcher, launcher), freeze, "medic-1") == ""
    again = refusal_of_strike(containers, cast(Launcher, launcher), KILL, "medic-1")
    assert again == "worker-1 does not run"
    assert launcher.struck == ["pause worker-1"]
