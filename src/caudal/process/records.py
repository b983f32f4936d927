"""Who runs under which name on this host: pids, told apart from recycled ones by start time.

Medics look at records often (watch_pids.py), so looking is made cheap: plain system calls.
"""

import os
import secrets
import signal
import time
from enum import Enum
from io import FileIO
from pathlib import Path

import msgspec


class ProcessRecord(msgspec.Struct, frozen=True):
    """One start of a name. `started` is the kernel's start time of the pid, in clock ticks."""

    incarnation: int
    pid: int
    started: int


_TICKS = os.sysconf("SC_CLK_TCK")  # in a second
_DECODER = msgspec.json.Decoder(ProcessRecord)


def write_record(folder: Path, name: str, incarnation: int, pid: int) -> None:
    """Put on record who runs; whole or not at all."""
    record = ProcessRecord(incarnation, pid, start_of(pid) or 0)
    temporary = folder / f".{name}.{secrets.token_hex(4)}"
    temporary.write_bytes(msgspec.json.encode(record))
    temporary.rename(folder / f"{name}.json")


def read_record(folder: Path, name: str) -> ProcessRecord | None:
    """Who ran last under that name, if anyone."""
    try:
        with FileIO(f"{folder}/{name}.json") as file:
            return _DECODER.decode(file.read())
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def start_of(pid: int) -> int | None:
    """The start time of a process; None if there is none, or only its remains (a zombie)."""
    state, *rest = _stat(pid) or ["X"]
    return None if state in "ZX" else int(rest[18])


def _stat(pid: int) -> list[str]:
    """What the kernel tells of a process after its name; nothing if there is none."""
    try:
        with FileIO(f"/proc/{pid}/stat") as file:
            told = file.read()
    except OSError:
        return []
    return told.rpartition(b") ")[2].decode("ascii").split()


class ProcessLife(Enum):
    """What the kernel knows of the process on record."""

    RUNNING = "running"
    STOPPED = "stopped"  # SIGSTOP holds it, neither dead nor alive
    GONE = "gone"  # or another process has got its pid


def life_of(record: ProcessRecord) -> ProcessLife:
    """How is the process on record?"""
    state, *rest = _stat(record.pid) or ["X"]
    if state in "ZX" or int(rest[18]) != record.started:
        return ProcessLife.GONE
    return ProcessLife.STOPPED if state == "T" else ProcessLife.RUNNING


def is_running(record: ProcessRecord) -> bool:
    """Does the process on record exist, and not another one with its recycled pid?"""
    return life_of(record) is not ProcessLife.GONE


def is_frozen(record: ProcessRecord) -> bool:
    """Does it exist, but stopped?"""
    return life_of(record) is ProcessLife.STOPPED


def age_of(record: ProcessRecord) -> float:
    """Seconds since its start."""
    booted = time.clock_gettime(time.CLOCK_BOOTTIME)
    return max(0.0, booted - record.started / _TICKS)


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
