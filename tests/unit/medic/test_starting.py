"""What `caudal up` looks at before it starts anything."""

import os
import re
import resource
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.acceptance.cluster import free_hundred

from caudal.cluster import rabbit_node, upkeep
from caudal.cluster.doctor import examine, not_ready
from caudal.cluster.folder import Cluster
from caudal.cluster.ports import refusals
from caudal.cluster.roster import Member, MemberKind
from caudal.cluster.settings import FILE
from caudal.cluster.upkeep import require_startable, start_all
from caudal.cluster.write_config import write_settings
from caudal.errors import UsageError
from caudal.process.records import write_record

AWAY = "amqp://nobody@127.0.0.1:1/"


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    write_settings(tmp_path, broker=AWAY, medics=1, gateways=1, workers=1, port=free_hundred())
    return Cluster.open(tmp_path)


@pytest.fixture
def taken(cluster: Cluster) -> Iterator[int]:
    """The port of the member that would be started last."""
    last = cluster.here[-1]
    with socket.create_server((last.address, last.port)):
        yield last.port


def test_with_a_port_taken_nothing_is_started(cluster: Cluster, taken: int) -> None:
    with pytest.raises(UsageError, match=f"port {taken} .*change `port`"):
        start_all(cluster)
    assert not list(cluster.folder.glob("run/*/*.json"))


@pytest.fixture
def killed(cluster: Cluster) -> Member:
    """One that was started before and is gone."""
    cluster.lay_out()
    last = cluster.here[-1]
    write_record(cluster.run_folder, last.name, 1, 0)
    return last


def test_a_port_that_a_killed_process_is_about_to_free_is_waited_for(
    cluster: Cluster, killed: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel calls a process gone a moment before its last thread is."""
    with socket.create_server((killed.address, killed.port)) as thread:
        monkeypatch.setattr(time, "sleep", lambda _: thread.close())
        assert killed in require_startable(cluster)


def test_a_port_that_nobody_frees_is_refused_although_its_process_ran_before(
    cluster: Cluster, killed: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "_LEAVE_SECONDS", 0.01)
    words = f"port {killed.port} .*change `port`"
    with (
        socket.create_server((killed.address, killed.port)),
        pytest.raises(UsageError, match=words),
    ):
        require_startable(cluster)


def test_a_medic_needs_its_port_for_udp_too(cluster: Cluster) -> None:
    medic = cluster.here[-1]
    with socket.socket(type=socket.SOCK_DGRAM) as other:
        other.bind((medic.address, medic.port))
        with pytest.raises(UsageError, match=f"UDP port {medic.port} .*medic-1.*change `port`"):
            start_all(cluster)
    assert not list(cluster.folder.glob("run/*/*.json"))


@pytest.mark.parametrize(("offset", "name"), [(120, "medic-1"), (130, "worker-1")])
def test_ports_of_metrics_are_needed_too(cluster: Cluster, offset: int, name: str) -> None:
    taken = cluster.settings.hosts["local"].port + offset
    words = f"TCP port {taken} .*{name}.*change `metrics`"
    with socket.create_server(("127.0.0.1", taken)), pytest.raises(UsageError, match=words):
        start_all(cluster)
    assert not list(cluster.folder.glob("run/*/*.json"))


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster that would start a private broker."""
    write_settings(tmp_path, broker="private", medics=1, gateways=0, port=free_hundred())
    monkeypatch.setattr(rabbit_node, "is_installed", lambda: True)
    return Cluster.open(tmp_path)


@pytest.mark.parametrize("offset", [90, 91, 92])
def test_a_private_broker_needs_a_port_for_its_node_and_one_for_epmd_too(
    private: Cluster, offset: int
) -> None:
    taken = private.settings.hosts["local"].port + offset
    with socket.socket() as other:
        other.bind(("127.0.0.1", taken))  # it does not listen, so it is no epmd
        with pytest.raises(UsageError, match=f"TCP port {taken} .*broker.*change `port`"):
            start_all(private)
    assert not list(private.folder.glob("run/*/*.json"))


def test_an_epmd_that_outlived_its_broker_is_in_nobodys_way(private: Cluster) -> None:
    [broker] = [one for one in private.here if one.kind is MemberKind.BROKER]
    port = broker.port + 2
    with socket.create_server(("127.0.0.1", port)) as server, ThreadPoolExecutor(1) as pool:

        def answer() -> bytes:
            visitor, _ = server.accept()
            with visitor:
                asked = visitor.recv(10)
                visitor.sendall(port.to_bytes(4, "big") + b"name rabbit at port 1\n")
                return asked

        asked = pool.submit(answer)
        assert list(refusals(private.settings, [broker])) == []
        assert asked.result() == b"\x00\x01n"


def test_with_too_few_open_files_nothing_is_started(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    with pytest.raises(UsageError, match=r"may open only 64 files.*ulimit -n 1024"):
        start_all(cluster)
    assert not list(cluster.folder.glob("run/*/*.json"))
    told = {one.what: one for one in examine(cluster)}["open files"]
    assert (told.found, told.remedy) == ("64 allowed per process", "raise it: ulimit -n 1024")


@pytest.mark.parametrize(
    ("key", "complaint"),
    [
        ("tokens", r"nowhere cannot be read.*caudal token new NAME"),
        ("metrics_token", r"nowhere cannot be read"),
        ("workspace", r"no folder .*nowhere for workers: make it, or change `workspace`"),
    ],
)
def test_with_a_named_file_missing_nothing_is_started(
    cluster: Cluster, key: str, complaint: str
) -> None:
    file = cluster.folder / FILE
    file.write_text(file.read_text().replace(f'{key} = ""', f'{key} = "nowhere"'))
    with pytest.raises(UsageError, match=complaint):
        start_all(Cluster.open(cluster.folder))
    assert not list(cluster.folder.glob("run/*/*.json"))
    told = {one.what: one for one in examine(Cluster.open(cluster.folder))}["files"]
    assert "nowhere" in told.found
    assert told.remedy


def test_with_a_workspace_that_is_read_only_nothing_is_started(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the sandbox of the systemd unit, without a drop-in for it."""
    file = cluster.folder / FILE
    (cluster.folder / "spill").mkdir()
    file.write_text(file.read_text().replace('workspace = ""', 'workspace = "spill"'))
    monkeypatch.setattr(os, "access", lambda path, mode: path.name != "spill")
    with pytest.raises(UsageError, match=r"cannot write to .*spill: .*ReadWritePaths"):
        start_all(Cluster.open(cluster.folder))
    assert not list(cluster.folder.glob("run/*/*.json"))


def test_with_a_weak_token_of_metrics_nothing_is_started(cluster: Cluster) -> None:
    file = cluster.folder / FILE
    file.write_text(file.read_text().replace('metrics_token = ""', 'metrics_token = "weak"'))
    (cluster.folder / "weak").write_text("guess-me\n")
    words = f"the token in {cluster.folder / 'weak'} is too weak: 24 characters at least"
    with pytest.raises(UsageError, match=re.escape(words)):
        start_all(Cluster.open(cluster.folder))
    assert not list(cluster.folder.glob("run/*/*.json"))
    told = {one.what: one for one in examine(Cluster.open(cluster.folder))}["files"]
    assert words in told.found


def test_an_address_of_another_machine_is_named_as_such(tmp_path: Path) -> None:
    write_settings(tmp_path, broker=AWAY, medics=1, gateways=0, workers=0, address="192.0.2.1")
    with pytest.raises(UsageError, match=r"change `address` of \[hosts\.local\]"):
        start_all(Cluster.open(tmp_path))


def test_the_doctor_calls_ports_good_only_if_all_are(cluster: Cluster, taken: int) -> None:
    ports = [one for one in examine(cluster) if "port" in one.what]
    assert [one.what for one in ports] == [f"TCP port {taken}"]
    assert "change `port`" in ports[0].remedy


def test_gateways_whose_broker_is_away_are_not_ready(cluster: Cluster) -> None:
    assert [one.what for one in not_ready(cluster)] == ["broker"]


def test_a_host_without_gateways_may_wait_for_its_broker(tmp_path: Path) -> None:
    write_settings(tmp_path, broker=AWAY, gateways=0)
    assert not_ready(Cluster.open(tmp_path)) == []
