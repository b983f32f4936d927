"""Computes the digest of the kernels' sources, to know whether compiled code is up to date."""

import hashlib
from pathlib import Path

_HERE = Path(__file__).parent


def digest_of_sources() -> str:
    """Return the digest of all sources of this folder, by path. Any change changes it, because
    kernels call functions and read constants of other files."""
    digest = hashlib.sha256()
    for path in sorted(_HERE.rglob("*.py")):
        source = path.read_bytes()
        digest.update(f"{path.relative_to(_HERE).as_posix()} {len(source)}\n".encode())
        digest.update(source)
    return digest.hexdigest()
