"""Files that appear whole or not at all."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from caudal.errors import UsageError


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Write to a temporary neighbour; rename at the end, remove it on any error or Ctrl-C."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with _one_line_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = partial.open("wb")
    try:
        with file:
            yield file
        with _one_line_errors(path):
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def _one_line_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error
