"""The commands of a cluster: what they say, and what they refuse."""

import os
import socket
import time
from pathlib import Path

import msgspec
import pytest
from tests.acceptance.cluster import free_hundred
from tests.harness.hand_clock import HandClock

from caudal.cli.main import main
from caudal.cli.status import ExitStatus
from caudal.cluster import upkeep
from caudal.cluster.folder import Cluster
from caudal.cluster.notices import notices
from caudal.cluster.settings import FILE
from caudal.cluster.write_config import write_settings
from caudal.formats.medic_status import ProcessStatus, StatusReply, told_work
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


def test_up_writes_nothing_if_it_could_not_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = free_hundred()
    new = ["up", "--dir", str(tmp_path / "new"), "--broker", AWAY]
    with socket.create_server(("127.0.0.1", first + 50)):
        assert main([*new, "--port", str(first)]) == ExitStatus.USAGE
    said = capsys.readouterr().err
    assert f"cluster.toml was not written: TCP port {first + 50} of 127.0.0.1" in said
    assert "free it, or give another --port" in said
    assert main([*new, "--host", "b"]) == ExitStatus.USAGE
    assert "copy it from another host, or leave out --host" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ("--workers 4", "`caudal scale worker=4 --dir {0}` changes it, then `caudal up --dir {0}`"),
        (
            "--gateways 3 --workers 4 --host b",
            "`caudal scale gateway=3 worker=4 --dir {0} --host b`",
        ),
        ("--gateways 0", "edit it, or choose another --dir"),
        ("--workers 4 --port 9000", "edit it, or choose another --dir"),
    ],
)
def test_up_with_other_settings_than_the_file_says_how_to_change_it(
    folder: Path, options: str, remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (folder / FILE).read_text()
    assert main(["up", "--dir", str(folder), *options.split()]) == ExitStatus.USAGE
    assert f"exists already: {remedy.format(folder)}" in capsys.readouterr().err
    assert (folder / FILE).read_text() == before


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


def test_who_takes_the_last_worker_away_is_told_that_jobs_wait(
    two_hosts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for host in ("b", "local"):
        count = ["scale", "worker=0", "--dir", str(two_hosts), "--host", host]
        assert main(count) == ExitStatus.OK
        said.append("every job waits" in capsys.readouterr().err)
    assert said == [False, True]


def test_a_purge_leaves_what_people_wrote_and_what_was_done(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster.open(folder)
    cluster.lay_out()
    kept = {FILE, "tokens", "audit"}
    (folder / "tokens").touch()
    (folder / "audit").mkdir()
    assert {one.name for one in folder.iterdir()} > kept
    assert main(["down", "--purge", "--dir", str(folder)]) == ExitStatus.OK
    assert {one.name for one in folder.iterdir()} == kept
    assert f"tokens and audit/ stay in {folder}" in capsys.readouterr().err


def test_without_medics_scale_promises_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scale", "worker=2", "--dir", str(folder)]) == ExitStatus.OK
    said = capsys.readouterr().err
    assert "no medic of" in said
    assert "will follow" not in said
    assert Cluster.open(folder).settings.hosts["local"].workers == 2


def test_without_its_secret_a_running_cluster_is_neither_shown_nor_scaled(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster.open(folder)
    cluster.lay_out()
    write_record(cluster.run_folder, "medic-1", 1, os.getpid())
    cluster.secret.unlink()
    text = (folder / FILE).read_text()
    for command in (["status"], ["scale", "worker=7"]):
        assert main([*command, "--dir", str(folder)]) == ExitStatus.USAGE
        assert "secret" in (said := capsys.readouterr().err)
        assert f"restore it, or stop the processes with `caudal down --dir {folder}`" in said
    assert (folder / FILE).read_text() == text


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


def test_status_says_that_tasks_wait_for_a_newer_worker(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    detail = told_work("", "job j has a plan of level 2, this process reads level 1", 1.0)
    one = ProcessStatus(
        "worker-1", "worker", "local", "healthy", 2, 1, 0.5, 7, 1 << 20, 99, detail, "here", "1.2.3"
    )
    told = StatusReply("medic-1", "leading", 1, "medic-1", [one])
    monkeypatch.setattr(upkeep, "look", lambda cluster: told)
    assert main(["status", "--dir", str(folder)]) == ExitStatus.OK
    words = " ".join(capsys.readouterr().out.split())
    assert "tasks wait for a worker of another version, usually a newer one" in words
    assert "worker-1 (1.2.3) left them, because job j has a plan of level 2" in words


def test_up_waits_for_workers_only_if_nothing_else_is_missing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that cannot reach the broker is not healthy: `up` says what is missing, at once."""
    waited: list[list[str]] = []

    def wait(cluster: Cluster, seconds: float, names: list[str], tell: object) -> StatusReply:
        waited.append(names)
        return StatusReply("medic-1", "leading", 1, "medic-1", [])

    monkeypatch.setattr(upkeep, "start_all", lambda cluster: [])
    monkeypatch.setattr(upkeep, "wait_until_healthy", wait)
    monkeypatch.setattr(upkeep, "unhealthy", lambda *_: [])
    assert main(["up", "--dir", str(folder)]) == ExitStatus.JOB
    assert waited == [["gateway-1", "medic-1"]]


def test_a_host_without_gateways_is_told_why_its_worker_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_settings(tmp_path, broker=AWAY, medics=1, gateways=0, workers=1, port=free_hundred())
    ill = StatusReply("medic-1", "leading", 1, "medic-1", [status_of("medic-1", "local")])
    clock = HandClock()
    monkeypatch.setattr(upkeep, "start_all", lambda cluster: [])
    monkeypatch.setattr(upkeep, "look", lambda cluster: ill)
    monkeypatch.setattr("caudal.cluster.upkeep.time.monotonic", clock.elapsed)
    monkeypatch.setattr("caudal.cluster.upkeep.time.sleep", lambda seconds: clock.sleep(1.0))
    assert main(["up", "--dir", str(tmp_path)]) == ExitStatus.JOB
    waits, why, *_ = capsys.readouterr().err.partition("still waiting for")[2].splitlines()
    assert "worker-1" in waits
    assert why.startswith("  broker: RabbitMQ is away")
    assert "start it, or correct `broker`" in why


def test_who_waits_is_told_for_what(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = status_of("worker-1", "local", "starting")
    ill = StatusReply("medic-1", "leading", 1, "medic-1", [worker])
    views, clock, lines = iter([*[None] * 20, *[ill] * 20]), HandClock(), list[str]()
    monkeypatch.setattr(upkeep, "look", lambda cluster: next(views))
    monkeypatch.setattr("caudal.cluster.upkeep.time.monotonic", clock.elapsed)
    monkeypatch.setattr("caudal.cluster.upkeep.time.sleep", lambda seconds: clock.sleep(1.0))
    upkeep.wait_until_healthy(Cluster.open(folder), 31, ["worker-1"], lines.append)
    assert [line.split(":")[0].split(";")[0] for line in lines] == [
        "still no medic answers",
        "still waiting for worker-1",
    ]


@pytest.fixture
def two_hosts(folder: Path) -> Path:
    with (folder / FILE).open("a") as file:
        file.write('[hosts.b]\naddress = "127.0.0.2"\nmedics = 1\nworkers = 1\n')
    (folder / "secret").write_text("00" * 32)
    return folder


def status_of(name: str, host: str, state: str = "healthy") -> ProcessStatus:
    return ProcessStatus(name, "medic", host, state, 1, 0, 0.5, 7, 1 << 20, 99, "", "here")


def test_commands_for_other_hosts_do_not_name_the_folder_of_this_one(two_hosts: Path) -> None:
    """There it may be elsewhere."""
    cluster = Cluster.open(two_hosts, "local")
    ill = [
        status_of("medic-1.b", "b", "unattended"),
        status_of("worker-1.b", "b", "failing"),
        status_of("worker-1.local", "local", "failing"),
    ]
    told = StatusReply("medic-1.local", "leading", 1, "medic-1.local", ill)
    remedies = [one.remedy for one in notices(cluster, told)]
    assert remedies[0] == "run `caudal up --dir FOLDER --host b` on it"
    assert "`caudal logs worker-1.b --dir FOLDER --host b`" in remedies[1]
    assert f"`caudal logs worker-1.local --dir {two_hosts} --host local`" in remedies[2]
    (two_hosts / "run/b").mkdir(parents=True)
    shared = notices(cluster, told)[0].remedy
    assert f"`caudal up --dir {two_hosts} --host b`" in shared, "both hosts use this folder"


def test_up_does_not_wait_for_what_the_leader_would_never_start(
    two_hosts: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The leader's host has another cluster.toml, without the worker of host b."""
    others = [one for one in Cluster.open(two_hosts, "b").members if one.name != "worker-1.b"]
    leaders = [*(status_of(one.name, one.host) for one in others), status_of("worker-9.c", "c")]
    told = StatusReply("medic-1.local", "leading", 1, "medic-1.local", leaders)
    clock = iter(range(10_000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(upkeep, "look", lambda cluster: told)
    monkeypatch.setattr(upkeep, "start_all", lambda cluster: [])
    monkeypatch.setattr("caudal.cli.cluster.not_ready", lambda cluster: [])
    assert main(["up", "--dir", str(two_hosts), "--host", "b"]) == ExitStatus.JOB
    said = " ".join(capsys.readouterr().err.split())
    assert "only this host's file names worker-1.b" in said
    assert "only that of medic-1.local names worker-9.c" in said
    assert next(clock) < 100


def test_up_does_not_wait_long_for_one_that_is_failing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    members = [status_of(one.name, one.host) for one in Cluster.open(folder).members]
    ill = [
        msgspec.structs.replace(one, state="failing" if one.name == "gateway-1" else "healthy")
        for one in members
    ]
    told = StatusReply("medic-1", "leading", 1, "medic-1", ill)
    clock = iter(range(10_000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(upkeep, "look", lambda cluster: told)
    monkeypatch.setattr(upkeep, "start_all", lambda cluster: [])
    assert main(["up", "--dir", str(folder)]) == ExitStatus.JOB
    assert "s: gateway-1; `caudal logs NAME" in capsys.readouterr().err
    assert next(clock) < 100


def test_status_has_the_last_words_of_one_that_is_failing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line of JSON begins with times and names; its reason comes last."""
    one = msgspec.structs.replace(status_of("worker-1", "local"), state="failing")
    told = StatusReply("medic-1", "leading", 1, "medic-1", [one])
    monkeypatch.setattr(upkeep, "look", lambda cluster: told)
    (folder / "logs").mkdir()
    line = '{"time": "2026-01-31T12:00:00.000Z", "level": "error", "event": "x", "reason": "'
    (folder / "logs/worker-1.log").write_text(f'{line}{"because " * 40}of this"}}\n')
    assert main(["status", "--dir", str(folder)]) == ExitStatus.OK
    words = " ".join(capsys.readouterr().out.split())
    assert "because of this" in words
    assert f"`caudal logs worker-1 --dir {folder}` shows why" in words


def test_scale_says_in_what_the_files_of_hosts_differ(
    two_hosts: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    processes = [status_of(one.name, one.host) for one in Cluster.open(two_hosts, "b").members]
    told = StatusReply("medic-1.local", "leading", 1, "medic-1.local", processes[1:])
    told = msgspec.structs.replace(told, settings={"b": ["store", "rate"]}, differing=["b"])
    monkeypatch.setattr(upkeep, "look", lambda cluster: told)
    assert main(["scale", "worker=2", "--dir", str(two_hosts), "--host", "b"]) == ExitStatus.OK
    said = capsys.readouterr().err
    assert "cluster.toml has another store, rate on b than on the host of medic-1.local" in said
    assert "cluster.toml names other processes on b than on the host of medic-1.local" in said
    assert f"only this host's file names {processes[0].name}" in said
    assert said.index("another store") < said.index("make the same change on local")


def test_scale_says_that_other_hosts_need_the_same_file(
    two_hosts: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = StatusReply("medic-1.local", "leading", 1, "medic-1.local", [])
    monkeypatch.setattr(upkeep, "look", lambda cluster: told)
    assert main(["scale", "worker=2", "--dir", str(two_hosts), "--host", "b"]) == ExitStatus.OK
    assert "make the same change on local" in capsys.readouterr().err
