"""The versions that decide the bits of an answer. The driver and all executors must agree."""

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

from caudal.kernels.sources import digest_of_sources
from caudal.version import __version__

_DIGITS = 12


@cache
def fingerprint() -> dict[str, str]:
    """Return the version of Caudal and of DuckDB, and digests of the code and of the kernels."""
    return {
        "caudal": __version__,
        "duckdb": version("duckdb"),
        "kernels": digest_of_sources()[:_DIGITS],
        "code": _digest_of_code()[:_DIGITS],
    }


def _digest_of_code() -> str:
    root = Path(__file__).parents[1]
    found = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        found.update(f"{path.relative_to(root).as_posix()}\n".encode())
        found.update(path.read_bytes())
    return found.hexdigest()
