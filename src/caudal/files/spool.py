"""Inputs that can be read once only: standard input, pipes. They are copied to a temporary file.

Types are inferred before rows are read, so every input is read twice. The copy has no name, so
nothing is left behind however the process ends; it is read as `/proc/self/fd/N`.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

STANDARD_INPUT = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})

_copies: dict[str, IO[bytes]] = {}  # by name; they live as long as the process
_names: dict[str, str] = {}  # of the inputs, by the path of their copy


def is_once_readable(path: str) -> bool:
    """Return whether a name is of standard input, a pipe or a device."""
    if path in STANDARD_INPUT:
        return True
    place = Path(path)
    try:
        return place.exists() and not place.is_file() and not place.is_dir()
    except OSError:
        return False


def spooled(path: str) -> Path:
    """Return a file with all that an input has to give. Standard input is copied once."""
    key = "-" if path in STANDARD_INPUT else path
    if key != "-" or key not in _copies:
        with _opened(key) as source:
            copy = tempfile.TemporaryFile()  # noqa: SIM115, it stays open
            shutil.copyfileobj(source, copy, 1 << 20)
            copy.flush()
        if key in _copies:
            _copies[key].close()
        _copies[key] = copy
    place = Path(f"/proc/self/fd/{_copies[key].fileno()}")
    _names[str(place)] = "standard input" if key == "-" else key
    return place


def spooled_name(path: str) -> str | None:
    """Return the name of the input of which a file is the copy."""
    return _names.get(path)


def forget() -> None:
    """Remove all copies, for whoever reads many inputs in one process."""
    for copy in _copies.values():
        copy.close()
    _copies.clear()
    _names.clear()


def _opened(key: str) -> IO[bytes]:
    if key == "-":
        return os.fdopen(os.dup(0), "rb")
    return Path(key).open("rb")
