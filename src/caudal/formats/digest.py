"""The one checksum of stored bytes: XXH3 of 128 bits, in hexadecimal.

Every byte of a batch is digested by who sends it, by who takes it and by who reads it, so the
speed counts (docs/adr/0014). It detects damage and files that changed; nothing secret rests on it.
"""

import xxhash


class Digesting:
    """The digest of bytes that come in pieces."""

    def __init__(self) -> None:
        self._found = xxhash.xxh3_128()

    def update(self, data: bytes | memoryview) -> None:
        self._found.update(data)

    @property
    def value(self) -> str:
        return self._found.hexdigest()


def digest(data: bytes | memoryview) -> str:
    """The digest of some bytes.

    >>> digest(b"")
    '99aa06d3014798d86001c324468d497f'
    """
    return xxhash.xxh3_128_hexdigest(data)
