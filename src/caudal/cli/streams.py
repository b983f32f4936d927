"""The standard streams of this process, made safe before anything uses them.

1. A closed descriptor 0, 1 or 2 is taken at once, else the next file opened would get its number
   and receive what others print. Writing to a standard output that was closed is an error.
2. Standard error carries words for people: that it is closed, full or a broken pipe changes no
   answer and no exit status.
3. What the terminal's encoding cannot show appears escaped.
"""

import contextlib
import io
import os
import sys

_INPUT, _OUTPUT, _ERRORS = 0, 1, 2


class _Forgiving(io.FileIO):
    """A file to which writing always succeeds."""

    def write(self, data: object, /) -> int:
        with contextlib.suppress(OSError):
            return super().write(data) or 0  # type: ignore[arg-type]
        return len(memoryview(data))  # type: ignore[arg-type]


def make_safe() -> None:
    """Call once, first thing in a process."""
    for descriptor in (_INPUT, _OUTPUT, _ERRORS):
        _take_if_closed(descriptor)
    if sys.stdout is None:
        sys.stdout = open(_OUTPUT, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    encoding = sys.stderr.encoding if sys.stderr is not None else "utf-8"
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_Forgiving(_ERRORS, "w", closefd=False)),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=True,
    )


def abandon_output() -> None:
    """Forget what is left to write to standard output, so that the exit does not fail too."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _OUTPUT)
    os.close(nowhere)


def _take_if_closed(descriptor: int) -> None:
    """Reading from it gives nothing, writing to it fails."""
    try:
        os.fstat(descriptor)
    except OSError:
        taken = os.open(os.devnull, os.O_RDONLY)
        if taken != descriptor:
            os.dup2(taken, descriptor)
            os.close(taken)
