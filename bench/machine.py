"""Facts about this process and the machine it runs on."""

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

LIBRARIES = ("duckdb", "polars", "pandas", "pyarrow", "numpy", "numba")


def peak_bytes() -> int:
    """The most memory this process ever held resident."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def describe() -> dict[str, str]:
    """What the times depend on, as label and value."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return {
        "Processor": f"{_processor()}, {os.cpu_count()} cores",
        "Memory": f"{memory / 2**30:.0f} GiB",
        "Python": platform.python_version(),
        "Libraries": versions,
    }


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.+)", path.read_text()) if path.exists() else None
    return found[1].strip() if found else platform.machine()
