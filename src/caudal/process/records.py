"""Records of the processes on this host by name: pids with start times, to detect recycled pids.

Medics read records often (watch_pids.py), so reading is cheap: plain system calls.
"""

import os
import secrets
import signal
import time
from enum import Enum
from io import FileIO
from pathlib import Path

import msgspec

from caudal.decoding import json_decoder


class ProcessRecord(msgspec.Struct, frozen=True):
    """One start of a name. `started` is the kernel's start time of the pid, in clock ticks."""

    incarnation: int
    pid: int
    started: int
    first: int = 1  # the incarnation that was started after a stop, or as the first one


STOPPED = -1  # instead of a pid: it was asked to end
_TICKS = os.sysconf("SC_CLK_TCK")  # per second
_DECODER: msgspec.json.Decoder[ProcessRecord] = json_decoder(ProcessRecord)


def write_record(folder: Path, name: str, incarnation: int, pid: int) -> None:
    """Write the record of a process atomically."""
    before = read_record(folder, name)
    first = incarnation if before is None or before.pid == STOPPED else before.first
    _write(folder, name, ProcessRecord(incarnation, pid, start_of(pid) or 0, first))


def note_stop(folder: Path, name: str) -> None:
    """Keep the number of a process that was asked to end; the next one begins a new count."""
    if record := read_record(folder, name):
        _write(folder, name, ProcessRecord(record.incarnation, STOPPED, 0, record.first))


def was_stopped(folder: Path, name: str) -> bool:
    """Return whether the last process of a name was asked to end, and did."""
    record = read_record(folder, name)
    return record is not None and record.pid == STOPPED


def _write(folder: Path, name: str, record: ProcessRecord) -> None:
    temporary = folder / f".{name}.{secrets.token_hex(4)}"
    temporary.write_bytes(msgspec.json.encode(record))
    temporary.rename(folder / f"{name}.json")


def read_record(folder: Path, name: str) -> ProcessRecord | None:
    """Return the record of the last process under that name, if any."""
    try:
        with FileIO(f"{folder}/{name}.json") as file:
            return _DECODER.decode(file.read())
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def written_at(folder: Path, name: str) -> float:
    """Return when the record was written, in seconds since 1970; 0 if there is none."""
    try:
        return (folder / f"{name}.json").stat().st_mtime
    except FileNotFoundError:
        return 0.0


def start_of(pid: int) -> int | None:
    """Return the start time of a process; None if it does not exist or is a zombie."""
    state, *rest = _stat(pid) or ["X"]
    return None if state in "ZX" else int(rest[18])


def cpu_seconds_of(pid: int) -> float:
    """Return the CPU time that a process has used; 0 if there is no process."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the name; [] if there is no process."""
    try:
        with FileIO(f"/proc/{pid}/stat") as file:
            told = file.read()
    except OSError:
        return []
    return told.rpartition(b") ")[2].decode("ascii").split()


class ProcessLife(Enum):
    """The kernel's state of the process on record."""

    RUNNING = "running"
    STOPPED = "stopped"  # by SIGSTOP
    GONE = "gone"  # or its pid belongs to another process


def life_of(record: ProcessRecord) -> ProcessLife:
    """Return the state of the process on record."""
    state, *rest = _stat(record.pid) or ["X"]
    if state in "ZX" or int(rest[18]) != record.started:
        return ProcessLife.GONE
    return ProcessLife.STOPPED if state == "T" else ProcessLife.RUNNING


def is_running(record: ProcessRecord) -> bool:
    """Return whether the process on record exists, and not another one with its recycled pid."""
    return life_of(record) is not ProcessLife.GONE


def is_frozen(record: ProcessRecord) -> bool:
    """Return whether it exists but is stopped."""
    return life_of(record) is ProcessLife.STOPPED


def age_of(record: ProcessRecord) -> float:
    """Return the seconds since its start."""
    booted = time.clock_gettime(time.CLOCK_BOOTTIME)
    return max(0.0, booted - record.started / _TICKS)


def send_signal(record: ProcessRecord, number: signal.Signals) -> bool:
    """Signal exactly that process, never another one with its pid. Return False if it is gone."""
    try:
        descriptor = os.pidfd_open(record.pid)
    except OSError:
        return False
    try:
        if not is_running(record):  # checked after opening: the descriptor cannot be recycled
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def wait_until_gone(record: ProcessRecord, seconds: float) -> bool:
    """Wait for the end of a process. Return True if it is gone."""
    deadline = time.monotonic() + seconds
    while is_running(record):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
