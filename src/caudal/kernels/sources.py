"""Which sources make the kernels: their digest tells whether compiled code is theirs."""

import hashlib
from pathlib import Path

_HERE = Path(__file__).parent


def digest_of_sources() -> str:
    """A digest of every source of this folder, by path. Any change of one is a change of all: what
    a kernel calls and which constants it reads is scattered over them."""
    digest = hashlib.sha256()
    for path in sorted(_HERE.rglob("*.py")):
        source = path.read_bytes()
        digest.update(f"{path.relative_to(_HERE).as_posix()} {len(source)}\n".encode())
        digest.update(source)
    return digest.hexdigest()
