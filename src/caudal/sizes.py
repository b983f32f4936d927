"""Parsing and formatting of sizes and durations."""

import re

from caudal.errors import UsageError

_UNITS = {"": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
_BINARY_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_bytes(text: str) -> int:
    """Return the number of bytes in a text such as `512MB`, `1.5GiB` or `8000000`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", text, re.IGNORECASE)
    if match is None or (match[3] and not match[2]):
        raise UsageError(f"{text!r} is not a size: write it like 512MB, 2GB or 1.5GiB")
    units = _BINARY_UNITS if match[3] else _UNITS
    return int(float(match[1]) * units[match[2].upper()])


_SECONDS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}


def parse_seconds(text: str) -> float:
    """Return the number of seconds in a text such as `90s`, `30m`, `12h` or `7d`."""
    match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*([smhd])\s*", text, re.ASCII)
    if match is None:
        raise UsageError(f"{text!r} is not a time: write it like 90s, 30m, 12h or 7d")
    return float(match[1]) * _SECONDS[match[2]]


def told_bytes(size: int) -> str:
    """Return a size for a message: in whole megabytes, or in bytes below one megabyte."""
    return f"{size // 10**6:,}MB" if size >= 10**6 else f"{size:,} bytes"
