"""Pids are told apart from recycled ones, and nobody innocent is ever signalled."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from caudal.process.records import (
    ProcessRecord,
    is_frozen,
    is_running,
    read_record,
    send_signal,
    start_of,
    wait_until_gone,
    write_record,
)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process
        process.kill()


def test_a_record_knows_its_process(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    write_record(tmp_path, "worker-1", 3, sleeper.pid)
    record = read_record(tmp_path, "worker-1")
    assert record is not None
    assert record.incarnation == 3
    assert is_running(record)
    assert send_signal(record, signal.SIGKILL)
    sleeper.wait()
    assert wait_until_gone(record, 30)
    assert not send_signal(record, signal.SIGKILL)


def test_an_innocent_process_with_a_recycled_pid_is_never_signalled(
    sleeper: subprocess.Popen[bytes],
) -> None:
    recycled = ProcessRecord(1, sleeper.pid, (start_of(sleeper.pid) or 0) - 1)
    assert not is_running(recycled)
    assert not send_signal(recycled, signal.SIGKILL)
    assert sleeper.poll() is None


def test_a_zombie_is_gone_and_a_stopped_one_is_frozen(sleeper: subprocess.Popen[bytes]) -> None:
    record = ProcessRecord(1, sleeper.pid, start_of(sleeper.pid) or 0)
    send_signal(record, signal.SIGSTOP)
    while not is_frozen(record):
        assert is_running(record)
    send_signal(record, signal.SIGKILL)
    assert wait_until_gone(record, 30)  # not reaped yet: a zombie
    assert start_of(sleeper.pid) is None


def test_no_record_and_a_damaged_one_are_none(tmp_path: Path) -> None:
    assert read_record(tmp_path, "worker-1") is None
    (tmp_path / "worker-1.json").write_text("{")
    assert read_record(tmp_path, "worker-1") is None
