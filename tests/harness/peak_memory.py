"""The peak memory of this process alone: a child inherits `ru_maxrss` from whoever started it."""

from pathlib import Path


def peak_mib() -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM:"))
