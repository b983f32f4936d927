"""The one checksum of stored bytes: the first 128 bits of SHA-256, in hexadecimal.

Every byte of a batch is digested by who sends it, by who takes it and by who reads it, so the
speed counts: processors compute SHA-256 in hardware (docs/adr/0010).
"""

import hashlib

_CHARACTERS = 32


class Digesting:
    """The digest of bytes that come in pieces."""

    def __init__(self) -> None:
        self._found = hashlib.sha256(usedforsecurity=False)

    def update(self, data: bytes | memoryview) -> None:
        self._found.update(data)

    @property
    def value(self) -> str:
        return self._found.hexdigest()[:_CHARACTERS]


def digest(data: bytes | memoryview) -> str:
    """The digest of some bytes.

    >>> digest(b"")
    'e3b0c44298fc1c149afbf4c8996fb924'
    """
    return hashlib.sha256(data, usedforsecurity=False).hexdigest()[:_CHARACTERS]
