"""Consoles of rich for standard output and standard error.

The width is that of the variable COLUMNS, else of the terminal, else a fixed one for pipes.
"""

import os
import sys

from rich.console import Console

_PIPE_WIDTH = 160
_LEAST_WIDTH = 20


def output_console() -> Console:
    """Return a console for answers."""
    return Console(width=_width(is_terminal=sys.stdout.isatty()))


def message_console() -> Console:
    """Return a console for messages."""
    return Console(stderr=True, width=_width(is_terminal=sys.stderr.isatty()))


def _width(*, is_terminal: bool) -> int | None:
    """Return the width; None if rich should ask the terminal."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return max(int(given), _LEAST_WIDTH)
    return None if is_terminal else _PIPE_WIDTH
