"""The one checksum of stored bytes: BLAKE2b of 128 bits, in hexadecimal."""

import hashlib

_BYTES = 16


def digest(data: bytes | memoryview) -> str:
    """The digest of some bytes.

    >>> digest(b"")
    'cae66941d9efbd404e4d88758ea67670'
    """
    return hashlib.blake2b(data, digest_size=_BYTES).hexdigest()
