"""The file of a report: checked before the work that fills it, written whole or not at all."""

import os
from pathlib import Path

from caudal.errors import UsageError


def require_writable(path: Path | None) -> None:
    """Raise UsageError if a report could not be written there."""
    if path is not None and (path.is_dir() or not os.access(path.parent, os.W_OK)):
        raise UsageError(f"cannot write {path}: give a file in a folder that can be written")


def write_whole(path: Path, data: bytes) -> None:
    """Write a file beside its place, then move it there."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
