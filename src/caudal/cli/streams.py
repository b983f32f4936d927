"""Safe standard streams, set up before anything uses them.

1. A closed descriptor 0, 1 or 2 is reopened at once. Otherwise the next opened file would get its
   number and receive printed output. Writing to a closed standard output is an error.
2. Standard error is only for messages. A closed, full or broken standard error changes no answer
   and no exit status.
3. Characters that the terminal's encoding cannot show are escaped.
4. Everything that is printed is written, or an error is raised: a write to a full disk or to a pipe
   may take a part only, and Python's unbuffered streams (PYTHONUNBUFFERED) ignore that.
"""

import contextlib
import io
import os
import select
import sys

_INPUT, _OUTPUT, _ERRORS = 0, 1, 2


class _Forgiving(io.FileIO):
    """A file whose writes never raise an error."""

    def write(self, data: object, /) -> int:
        with contextlib.suppress(OSError):
            return super().write(data) or 0  # type: ignore[arg-type]
        return len(memoryview(data))  # type: ignore[arg-type]


class _Whole(io.FileIO):
    """A file that waits where a non-blocking one takes nothing."""

    def write(self, data: object, /) -> int:
        while (written := super().write(data)) is None:  # type: ignore[arg-type]
            select.select([], [self.fileno()], [])
        return written


def make_safe() -> None:
    """Set up the standard streams. Call once, first in the process."""
    for descriptor in (_INPUT, _OUTPUT, _ERRORS):
        _take_if_closed(descriptor)
    sys.stdout = _output()
    encoding = sys.stderr.encoding if sys.stderr is not None else "utf-8"
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_Forgiving(_ERRORS, "w", closefd=False)),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=True,
    )


def _output() -> io.TextIOWrapper:
    """Return a standard output that writes everything, line by line for people and for logs."""
    given = sys.stdout
    unbuffered = isinstance(given, io.TextIOWrapper) and given.write_through
    return io.TextIOWrapper(
        io.BufferedWriter(_Whole(_OUTPUT, "w", closefd=False)),
        encoding=given.encoding if given is not None else "utf-8",
        errors="backslashreplace",
        line_buffering=unbuffered or os.isatty(_OUTPUT),
    )


def finish_output() -> None:
    """Write what was printed before an error; what cannot be written is discarded."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    abandon_output()


def abandon_output() -> None:
    """Discard unwritten standard output, so that the exit does not fail too."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _OUTPUT)
    os.close(nowhere)


def _take_if_closed(descriptor: int) -> None:
    """Reopen a closed descriptor so that reads give nothing and writes fail."""
    try:
        os.fstat(descriptor)
    except OSError:
        taken = os.open(os.devnull, os.O_RDONLY)
        if taken != descriptor:
            os.dup2(taken, descriptor)
            os.close(taken)
