"""How much memory and CPU time some processes take while something runs, from /proc, by pid.

Peaks are the kernel's own (`VmHWM`, set back when the watch begins), so nothing between two looks
is missed but the last moments of a process that ends. A process counts with its descendants.
"""

import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

_LOOK_SECONDS = 0.1
_TICKS = os.sysconf("SC_CLK_TCK")
_RESET_PEAK = "5"


@dataclass
class Watched:
    """Of each name: the most bytes that it held, and the CPU seconds that it took."""

    peak_bytes: dict[str, int] = field(default_factory=dict)
    cpu_seconds: dict[str, float] = field(default_factory=dict)


@dataclass
class Watch:
    """Looks at some processes again and again. More may join while it goes on."""

    pids: dict[str, int]
    found: Watched = field(default_factory=Watched)

    def look(self) -> None:
        for name, pid in list(self.pids.items()):
            family = _family(pid)
            held = sum(_peak(one) for one in family)
            self.found.peak_bytes[name] = max(held, self.found.peak_bytes.get(name, 0))


@contextmanager
def watching(pids: Mapping[str, int]) -> Iterator[Watch]:
    """Watch until the end of the block."""
    watch, over = Watch(dict(pids)), threading.Event()
    before = {name: _cpu(pid) for name, pid in pids.items()}
    for pid in pids.values():
        _reset_peaks(pid)

    def go_on() -> None:
        while not over.wait(_LOOK_SECONDS):
            watch.look()

    thread = threading.Thread(target=go_on, name="watch")
    thread.start()
    try:
        yield watch
    finally:
        over.set()
        thread.join()
        watch.look()
        for name, spent in before.items():
            watch.found.cpu_seconds[name] = _cpu(pids[name]) - spent


def _family(pid: int) -> list[int]:
    """A process and its descendants, as far as they are alive."""
    found = [pid]
    for one in found:
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            with suppress(OSError):
                found += map(int, children.read_text().split())
    return found


def _peak(pid: int) -> int:
    with suppress(OSError):
        match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        return int(match[1]) * 1024 if match else 0
    return 0


def _reset_peaks(pid: int) -> None:
    for one in _family(pid):
        with suppress(OSError):
            Path(f"/proc/{one}/clear_refs").write_text(_RESET_PEAK)


def _cpu(pid: int) -> float:
    """User and system time of a process and its living descendants."""
    spent = 0
    for one in _family(pid):
        with suppress(OSError):
            words = Path(f"/proc/{one}/stat").read_text().rpartition(") ")[2].split()
            spent += int(words[11]) + int(words[12])
    return spent / _TICKS
