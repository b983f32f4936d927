"""The checksum of all stored bytes: XXH3 of 128 bits, in hexadecimal.

Client, gateway and worker each compute the digest of every byte of a batch, so its speed matters
(docs/adr/0014). It detects damage and changed files. It is not used for security.
"""

import xxhash


class Digesting:
    """The digest of bytes that come in pieces."""

    def __init__(self) -> None:
        self._found = xxhash.xxh3_128()

    def update(self, data: bytes | memoryview) -> None:
        self._found.update(data)

    def copy(self) -> "Digesting":
        """Return a digest of the same pieces, to which others may be added."""
        other = Digesting()
        other._found = self._found.copy()
        return other

    @property
    def value(self) -> str:
        return self._found.hexdigest()


def digest(data: bytes | memoryview) -> str:
    """Return the digest of some bytes.

    >>> digest(b"")
    '99aa06d3014798d86001c324468d497f'
    """
    return xxhash.xxh3_128_hexdigest(data)
