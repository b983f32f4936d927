"""Output files that are created atomically: complete or not at all."""

import contextlib
import errno
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from caudal.errors import OutputError


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Write to a temporary file beside `path`; rename it at the end, delete it on any failure.

    A failure is an error or a signal. Devices and pipes are written to directly.
    """
    with _one_line_errors(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.exists() and not path.is_file():
            target, partial = path, path
        else:
            target = path.resolve()  # replace the target of a link, not the link
            partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
            target.parent.mkdir(parents=True, exist_ok=True)
        file = io.BufferedWriter(_OutputFile(partial, path))
    try:
        with file:
            yield file
        if partial != target:
            with _one_line_errors(path):
                partial.replace(target)
    finally:
        if partial != target:
            partial.unlink(missing_ok=True)


class _OutputFile(io.FileIO):
    """A file that raises its write errors as OutputError with a one-line message."""

    def __init__(self, partial: Path, path: Path) -> None:
        super().__init__(partial, "w")
        self._path = path

    def write(self, data: object, /) -> int:
        with _one_line_errors(self._path):
            return super().write(data) or 0  # type: ignore[arg-type]


@contextlib.contextmanager
def _one_line_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
