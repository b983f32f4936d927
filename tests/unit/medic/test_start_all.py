"""`caudal up` on a host of several, whose processes medics may start at the same time."""

import os
from pathlib import Path

import pytest
from tests.acceptance.cluster import free_hundred

from caudal.cluster import upkeep
from caudal.cluster.folder import Cluster
from caudal.cluster.roster import Member
from caudal.cluster.settings import FILE
from caudal.formats.medic_status import ProcessStatus, StatusReply
from caudal.medic.launcher import LocalLauncher
from caudal.process.records import write_record


def test_what_a_medic_starts_meanwhile_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The medics name its number before this host has looked at its records."""
    hosts = f'[hosts.a]\nport = {free_hundred()}\n[hosts.b]\naddress = "127.0.0.2"\n'
    (tmp_path / FILE).write_text(f'broker = "amqp://127.0.0.1:1/"\n{hosts}')
    cluster = Cluster.open(tmp_path, "a")
    cluster.secret.touch(0o600)
    cluster.secret.write_text("a secret that is long enough, so it is taken")
    cluster.lay_out()
    started: dict[str, int] = {}

    def look(_: Cluster) -> StatusReply:
        write_record(cluster.run_folder, "worker-1.a", 6, os.getpid())
        worker = ProcessStatus(
            "worker-1.a", "worker", "a", "healthy", 6, 0, 0.1, 0, 1, 1, "", "127.0.0.1:1"
        )
        return StatusReply("medic-1.b", "leading", 1, "medic-1.b", [worker])

    def start(_: LocalLauncher, member: Member, dead: int) -> int:
        started[member.name] = dead
        return dead + 1

    monkeypatch.setattr(upkeep, "look", look)
    monkeypatch.setattr(LocalLauncher, "start", start)
    upkeep.start_all(cluster)
    assert "worker-2.a" in started
    assert "worker-1.a" not in started
