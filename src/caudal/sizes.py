"""Sizes as people write them."""

import re

from caudal.errors import UsageError

_UNITS = {"": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
_BINARY_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_bytes(text: str) -> int:
    """`512MB`, `1.5GiB`, `8000000` as a number of bytes."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", text, re.IGNORECASE)
    if match is None or (match[3] and not match[2]):
        raise UsageError(f"{text!r} is not a size: write it like 512MB, 2GB or 1.5GiB")
    units = _BINARY_UNITS if match[3] else _UNITS
    return int(float(match[1]) * units[match[2].upper()])


def told_bytes(size: int) -> str:
    """A size for a message: whole megabytes, or bytes where there is none."""
    return f"{size // 10**6:,}MB" if size >= 10**6 else f"{size:,} bytes"
