"""Starting is idempotent, hung processes are killed first, and logs are bounded."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.waiting import until

from caudal.cluster.folder import Cluster
from caudal.cluster.roster import Member, MemberKind
from caudal.cluster.write_config import write_settings
from caudal.medic.launcher import LOG_MOST, LocalLauncher, locked, shorten
from caudal.process.records import (
    is_frozen,
    is_running,
    read_record,
    send_signal,
    write_record,
)

MEMBER = Member("worker-1", MemberKind.WORKER, "local", "127.0.0.1", 0, 1)


class Sleepers(Cluster):
    """A cluster whose processes only sleep."""

    def command(self, member: Member, heart: Path) -> list[str]:
        return [sys.executable, "-c", "import time; print('here', flush=True); time.sleep(600)"]


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    write_settings(tmp_path, broker="amqp://nobody@127.0.0.1:1/")
    found = Sleepers.open(tmp_path)
    found.lay_out()
    return found


@pytest.fixture
def launcher(cluster: Cluster) -> Iterator[LocalLauncher]:
    one = LocalLauncher(cluster)
    yield one
    one.stop("worker-1", 5)


def test_an_order_twice_starts_once(cluster: Cluster, launcher: LocalLauncher) -> None:
    assert launcher.start(MEMBER, 0) == 1
    first = read_record(cluster.run_folder, "worker-1")
    assert launcher.start(MEMBER, 0) is None
    assert LocalLauncher(cluster).start(MEMBER, 0) is None
    assert read_record(cluster.run_folder, "worker-1") == first


def test_a_process_that_recorded_itself_meanwhile_stays_on_record(
    cluster: Cluster, launcher: LocalLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A medic was killed after it started the process, before it recorded that."""
    spawn, started = LocalLauncher._spawn, list[subprocess.Popen[bytes]]()

    def second(self: LocalLauncher, member: Member, incarnation: int) -> subprocess.Popen[bytes]:
        first = spawn(self, member, incarnation)
        write_record(cluster.run_folder, member.name, incarnation, first.pid)
        started.extend([first, spawn(self, member, incarnation)])
        return started[1]

    monkeypatch.setattr(LocalLauncher, "_spawn", second)
    assert launcher.start(MEMBER, 0) == 1
    record = read_record(cluster.run_folder, "worker-1")
    assert record is not None
    assert record.pid == started[0].pid
    started[1].kill()
    started[1].wait()
    assert launcher.start(MEMBER, 0) is None
    launcher.stop("worker-1", 5)
    started[0].wait()


def test_numbers_go_on_after_a_stop(cluster: Cluster, launcher: LocalLauncher) -> None:
    """Medics of other hosts hear only what is newer than what they know."""
    launcher.start(MEMBER, 0)
    launcher.stop("worker-1", 5)
    record = launcher.record("worker-1")
    assert record is not None
    assert (record.incarnation, record.gone) == (1, True)
    assert launcher.start(MEMBER, 0) == 2
    record = launcher.record("worker-1")
    assert record is not None
    assert (record.incarnation, record.first) == (2, 2)
    assert launcher.replace(MEMBER, 5) == 3
    record = launcher.record("worker-1")
    assert record is not None
    assert (record.incarnation, record.first) == (3, 2)
    launcher.stop("worker-1", 5)
    assert [one.incarnation for one in launcher.records(["worker-1"], ["worker-1"])] == [3]


def test_numbers_go_on_after_a_removal(cluster: Cluster, launcher: LocalLauncher) -> None:
    """`caudal scale` took a worker away and gave it back, before other hosts noticed."""
    assert launcher.start(MEMBER, 2) == 3
    assert launcher.names() == ["worker-1"]
    launcher.stop("worker-1", 5)
    launcher.remove("worker-1")
    assert launcher.names() == []  # it is not stopped again and again
    assert launcher.start(MEMBER, 0) == 4


def test_a_hung_process_is_killed_before_its_replacement_starts(
    cluster: Cluster, launcher: LocalLauncher
) -> None:
    launcher.start(MEMBER, 0)
    hung = read_record(cluster.run_folder, "worker-1")
    assert hung is not None
    send_signal(hung, signal.SIGSTOP)
    while not is_frozen(hung):
        pass
    assert launcher.start(MEMBER, 1) == 2
    assert not is_running(hung)
    record = launcher.record("worker-1")
    assert record is not None
    assert (record.incarnation, record.gone) == (2, False)


def test_a_log_is_followed_over_the_end_of_a_process_and_its_next_start(
    cluster: Cluster, launcher: LocalLauncher
) -> None:
    launcher.start(MEMBER, 0)
    lines = launcher.log_lines("worker-1", 1, follow=True)
    assert next(lines) == "here"
    found = read_record(cluster.run_folder, "worker-1")
    assert found is not None
    send_signal(found, signal.SIGKILL)
    until(lambda: not is_running(found))
    assert launcher.start(MEMBER, 1) == 2
    assert next(lines) == "here"
    assert cluster.log_of("worker-1").read_text() == "here\n" * 2


def test_one_that_was_killed_is_on_record_as_gone(
    cluster: Cluster, launcher: LocalLauncher
) -> None:
    launcher.start(MEMBER, 0)
    found = read_record(cluster.run_folder, "worker-1")
    assert found is not None
    send_signal(found, signal.SIGKILL)
    while is_running(found):
        pass
    record = launcher.record("worker-1")
    assert record is not None
    assert record.gone
    assert launcher.start(MEMBER, 1) == 2


def test_a_newer_one_that_died_is_replaced_although_the_order_is_old(
    cluster: Cluster, launcher: LocalLauncher
) -> None:
    launcher.start(MEMBER, 4)
    found = read_record(cluster.run_folder, "worker-1")
    assert found is not None
    assert found.incarnation == 5
    send_signal(found, signal.SIGKILL)
    while is_running(found):
        pass
    assert launcher.start(MEMBER, 2) == 6


def test_one_that_is_replaced_ends_by_itself_and_no_other_start_comes_between(
    cluster: Cluster, launcher: LocalLauncher
) -> None:
    launcher.start(MEMBER, 0)
    before = read_record(cluster.run_folder, "worker-1")
    assert before is not None
    with locked(cluster.run_folder / "worker-1.starting"):
        assert launcher.replace(MEMBER, 5) is None  # a medic starts it at this moment
        assert is_running(before)
    assert launcher.replace(MEMBER, 5) == 2
    assert not is_running(before)
    assert launcher.start(MEMBER, 1) is None  # the order of a medic that saw its end


def test_stopping_leaves_only_a_number_behind(cluster: Cluster, launcher: LocalLauncher) -> None:
    launcher.start(MEMBER, 0)
    record = read_record(cluster.run_folder, "worker-1")
    launcher.stop("worker-1", 5)
    assert record is not None
    assert not is_running(record)
    launcher.remove("worker-1")
    assert [one.name for one in cluster.run_folder.iterdir()] == ["worker-1.json"]  # its number


def test_a_log_keeps_its_newest_part(tmp_path: Path) -> None:
    log = tmp_path / "worker-1.log"
    with log.open("ab") as writer:
        writer.write(b"x" * LOG_MOST + b"the end")
        writer.flush()
        shorten(log)
        writer.write(b"goes on")
    assert log.read_bytes() == b"goes on"
    assert (tmp_path / "worker-1.log.1").read_bytes().endswith(b"the end")
