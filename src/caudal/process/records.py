"""Who runs under which name on this host: pids, told apart from recycled ones by start time."""

import os
import secrets
import signal
import time
from pathlib import Path

import msgspec


class ProcessRecord(msgspec.Struct, frozen=True):
    """One start of a name. `started` is the kernel's start time of the pid, in clock ticks."""

    incarnation: int
    pid: int
    started: int


def write_record(folder: Path, name: str, incarnation: int, pid: int) -> None:
    """Put on record who runs; whole or not at all."""
    record = ProcessRecord(incarnation, pid, start_of(pid) or 0)
    temporary = folder / f".{name}.{secrets.token_hex(4)}"
    temporary.write_bytes(msgspec.json.encode(record))
    temporary.rename(folder / f"{name}.json")


def read_record(folder: Path, name: str) -> ProcessRecord | None:
    """Who ran last under that name, if anyone."""
    try:
        return msgspec.json.decode((folder / f"{name}.json").read_bytes(), type=ProcessRecord)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def start_of(pid: int) -> int | None:
    """The start time of a process; None if there is none, or only its remains (a zombie)."""
    state, *rest = _stat(pid) or ["X"]
    return None if state in "ZX" else int(rest[18])


def _stat(pid: int) -> list[str]:
    """What the kernel tells of a process after its name; nothing if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(") ")[2].split()


def is_running(record: ProcessRecord) -> bool:
    """Does the process on record exist, and not another one with its recycled pid?"""
    return start_of(record.pid) == record.started


def is_frozen(record: ProcessRecord) -> bool:
    """Is it stopped (SIGSTOP), neither dead nor alive?"""
    return _stat(record.pid)[:1] == ["T"]


def age_of(record: ProcessRecord) -> float:
    """Seconds since its start."""
    ticks = time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK")
    return max(0.0, (ticks - record.started) / os.sysconf("SC_CLK_TCK"))


def send_signal(record: ProcessRecord, number: signal.Signals) -> bool:
    """Signal exactly that process, never another one that got its pid; False if it is gone."""
    try:
        descriptor = os.pidfd_open(record.pid)
    except OSError:
        return False
    try:
        if not is_running(record):  # asked after opening: the descriptor cannot be recycled
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def wait_until_gone(record: ProcessRecord, seconds: float) -> bool:
    """Wait for the end of a process; True if it is gone."""
    deadline = time.monotonic() + seconds
    while is_running(record):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
