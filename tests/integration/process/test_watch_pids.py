"""Seeing the ends of processes by their descriptors."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.harness.waiting import until

from caudal.process import watch_pids
from caudal.process.records import ProcessLife, ProcessRecord, is_frozen, read_record, write_record
from caudal.process.watch_pids import Attendance


@pytest.fixture
def attendance(tmp_path: Path) -> Iterator[Attendance]:
    with closing(Attendance(tmp_path)) as made:
        yield made


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"])
    write_record(tmp_path, "one", 1, process.pid)
    yield process
    process.kill()
    process.wait()


def job_runs(
    attendance: Attendance, *names: str, closely: tuple[str, ...] = ()
) -> dict[str, ProcessLife]:
    return {name: job_run for name, _, job_run in attendance.look(names, closely)}


def test_a_held_process_is_not_read_about_again(
    attendance: Attendance, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def counted(real: Callable[..., object]) -> Callable[..., object]:
        def counting(*given: object) -> object:
            asked.append(given)
            return real(*given)

        return counting

    for name in ("read_record", "life_of"):
        monkeypatch.setattr(watch_pids, name, counted(getattr(watch_pids, name)))
    assert job_runs(attendance, "one") == {"one": ProcessLife.RUNNING}
    assert asked
    asked.clear()
    assert [job_runs(attendance, "one") for _ in range(3)] == [{"one": ProcessLife.RUNNING}] * 3
    assert asked == []


def test_an_end_is_seen_before_anyone_waited_for_the_remains(
    attendance: Attendance, sleeper: subprocess.Popen[bytes]
) -> None:
    assert job_runs(attendance, "one") == {"one": ProcessLife.RUNNING}
    sleeper.kill()
    until(lambda: job_runs(attendance, "one") == {"one": ProcessLife.GONE})


def test_a_successor_is_seen(
    tmp_path: Path, attendance: Attendance, sleeper: subprocess.Popen[bytes]
) -> None:
    job_runs(attendance, "one")
    sleeper.kill()
    sleeper.wait()
    assert job_runs(attendance, "one") == {"one": ProcessLife.GONE}
    write_record(tmp_path, "one", 2, os.getpid())
    ((_, record, job_run),) = attendance.look(["one"], ())
    assert (record.incarnation, job_run) == (2, ProcessLife.RUNNING)


def test_a_stopped_one_is_seen_by_who_looks_closely(
    attendance: Attendance, sleeper: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    job_runs(attendance, "one")
    record = read_record(tmp_path, "one")
    assert record is not None
    sleeper.send_signal(signal.SIGSTOP)
    until(lambda: is_frozen(record))
    assert job_runs(attendance, "one") == {"one": ProcessLife.RUNNING}
    assert job_runs(attendance, "one", closely=("one",)) == {"one": ProcessLife.STOPPED}


def test_another_process_with_its_pid_is_not_it(
    attendance: Attendance,
    sleeper: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    older = ProcessRecord(1, sleeper.pid, 1)
    monkeypatch.setattr(watch_pids, "read_record", lambda folder, name: older)
    assert job_runs(attendance, "one") == {"one": ProcessLife.GONE}


def test_without_descriptors_the_kernel_is_asked(
    attendance: Attendance, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(pid: int) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    assert job_runs(attendance, "one") == {"one": ProcessLife.RUNNING}
    sleeper.kill()
    sleeper.wait()
    assert job_runs(attendance, "one", "nobody") == {"one": ProcessLife.GONE}
