"""The versions that decide the bits of an answer. The driver and all executors must agree."""

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa

from caudal.kernels.sources import digest_of_sources
from caudal.version import __version__

_DIGITS = 12


@cache
def fingerprint() -> dict[str, str]:
    """Return the versions of Caudal, DuckDB and Arrow, and digests of code and kernels."""
    return {
        "caudal": __version__,
        "duckdb": version("duckdb"),
        "pyarrow": pa.__version__,  # Spark has loaded it: it may not be the one that pip names
        "kernels": digest_of_sources()[:_DIGITS],
        "code": _digest_of_code()[:_DIGITS],
    }


def _digest_of_code() -> str:
    root = Path(__file__).parents[1]
    found = hashlib.sha256()
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.tsv")]):  # the lexicon of sentiment
        found.update(f"{path.relative_to(root).as_posix()}\n".encode())
        found.update(path.read_bytes())
    return found.hexdigest()
