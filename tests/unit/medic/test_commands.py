"""The commands of a cluster: what they say, and what they refuse."""

import os
from pathlib import Path

import msgspec
import pytest
from tests.acceptance.cluster import free_hundred

from caudal.cli.main import main
from caudal.cli.status import ExitStatus
from caudal.cluster import upkeep
from caudal.cluster.folder import Cluster
from caudal.cluster.settings import FILE
from caudal.cluster.write_config import write_settings
from caudal.formats.medic_status import ProcessStatus, StatusReply
from caudal.process.records import write_record

AWAY = "amqp://nobody@127.0.0.1:1/"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_settings(tmp_path, broker=AWAY, medics=1, gateways=1, workers=1, port=free_hundred())
    return tmp_path


@pytest.fixture
def healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    """`up` starts nothing, and everything is healthy."""
    told = StatusReply("medic-1", "leading", 1, "medic-1", [])
    monkeypatch.setattr(upkeep, "start_all", lambda cluster: [])
    monkeypatch.setattr(upkeep, "wait_until_healthy", lambda *_: told)
    monkeypatch.setattr(upkeep, "unhealthy", lambda *_: [])


@pytest.mark.usefixtures("healthy")
def test_up_ends_with_what_keeps_gateways_from_being_ready(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--dir", str(folder)]) == ExitStatus.JOB
    assert "not ready: broker: RabbitMQ is away" in capsys.readouterr().err


def test_who_interrupts_up_learns_that_it_runs_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def start(cluster: Cluster) -> list[str]:
        cluster.lay_out()
        write_record(cluster.run_folder, "worker-1", 1, os.getpid())
        return ["worker-1"]

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(upkeep, "start_all", start)
    monkeypatch.setattr(upkeep, "wait_until_healthy", interrupted)
    assert main(["up", "--dir", str(folder)]) == ExitStatus.INTERRUPTED
    said = capsys.readouterr().err
    assert "keep running" in said
    assert f"`caudal down --dir {folder}` stops them" in said


@pytest.mark.parametrize(
    ("count", "complaint"),
    [
        ("gateway=0", "without gateways nothing can reach a cluster"),
        ("worker=5000", "workers = 5000: must be from 0 to 999"),
        ("worker=-1", "write worker=4"),
    ],
)
def test_a_count_that_cannot_be_changes_nothing(
    folder: Path, count: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (folder / FILE).read_text()
    assert main(["scale", count, "--dir", str(folder)]) == ExitStatus.USAGE
    assert complaint in capsys.readouterr().err
    assert (folder / FILE).read_text() == before


def test_without_medics_scale_promises_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scale", "worker=2", "--dir", str(folder)]) == ExitStatus.OK
    said = capsys.readouterr().err
    assert "no medic of" in said
    assert "will follow" not in said
    assert Cluster.open(folder).settings.hosts["local"].workers == 2


def test_suggested_commands_can_be_pasted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "my cluster"
    assert main(["status", "--dir", str(folder)]) == ExitStatus.USAGE
    assert f"`caudal up --dir '{folder}'` creates it" in capsys.readouterr().err
    write_settings(folder, broker=AWAY)
    assert main(["status", "--dir", str(folder)]) == ExitStatus.UNREACHABLE
    assert f"`caudal up --dir '{folder}'` starts" in capsys.readouterr().err
    with (folder / FILE).open("a") as file:
        file.write('[hosts.b]\naddress = "127.0.0.2"\n')
    assert Cluster.open(folder, "b").options == f"--dir '{folder}' --host b"


def test_the_status_for_programs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = ProcessStatus(
        "worker-1", "worker", "local", "healthy", 2, 1, 0.5, 7, 1 << 20, 99, "", "here", "1.2.3"
    )
    told = StatusReply("medic-1", "leading", 1, "medic-1", [one])
    monkeypatch.setattr(upkeep, "look", lambda cluster: told)
    assert main(["status", "--json", "--dir", str(folder)]) == ExitStatus.OK
    assert msgspec.json.decode(capsys.readouterr().out, type=StatusReply) == told
    monkeypatch.setattr(upkeep, "look", lambda cluster: None)
    assert main(["status", "--json", "--dir", str(folder)]) == ExitStatus.UNREACHABLE


def test_up_waits_for_workers_only_if_nothing_else_is_missing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that cannot reach the broker is not healthy: `up` says what is missing, at once."""
    waited: list[list[str]] = []

    def wait(cluster: Cluster, seconds: float, names: list[str]) -> StatusReply:
        waited.append(names)
        return StatusReply("medic-1", "leading", 1, "medic-1", [])

    monkeypatch.setattr(upkeep, "start_all", lambda cluster: [])
    monkeypatch.setattr(upkeep, "wait_until_healthy", wait)
    monkeypatch.setattr(upkeep, "unhealthy", lambda *_: [])
    assert main(["up", "--dir", str(folder)]) == ExitStatus.JOB
    assert waited == [["gateway-1", "medic-1"]]
