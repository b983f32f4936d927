"""The SELECT of a command: an argument, a file, or standard input."""

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from caudal.application import load_application, shipped_applications
from caudal.errors import UsageError
from caudal.model import ADHOC, Application

_STDIN = "-"
_NO_TABLE = re.compile(r"Table with name (\S+) does not exist")


def given_select(
    first: str | None, second: str | None, query_file: Path | None
) -> tuple[str | None, str]:
    """Return the application, if one is named, and the SELECT."""
    if query_file is not None:
        if second is not None:
            raise UsageError("give the SELECT as an argument or with -f, not both")
        return first, _text_of(query_file)
    if second is not None:
        return first, _typed_in() if second == _STDIN else second
    if first is None or first == _STDIN:
        if sys.stdin.isatty() and first is None:
            raise UsageError("give a SELECT, or a file with one: caudal sql -f FILE")
        return None, _typed_in()
    if first in shipped_applications() or _is_folder(first):
        select = "" if sys.stdin.isatty() else _typed_in()
        if select.strip():
            return first, select
    return None, first


def _text_of(path: Path) -> str:
    if str(path) == _STDIN:
        return _typed_in()
    try:
        return path.read_text("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text: save it in UTF-8") from None


def _typed_in() -> str:
    """Return what standard input holds."""
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError("standard input is not UTF-8 text: give the SELECT in UTF-8") from None
    except OSError:  # nothing can be read there
        return ""


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except (OSError, ValueError):  # too long for a name
        return False


@contextlib.contextmanager
def knowing_applications(asked: Application) -> Iterator[None]:
    """Say which application has the table that a SELECT without an application names."""
    try:
        yield
    except UsageError as error:
        missing = _NO_TABLE.search(str(error))
        if asked.name != ADHOC or missing is None:
            raise
        for name, folder in shipped_applications().items():
            if any(table.name == missing[1] for table in load_application(folder).tables):
                hint = f'{missing[1]} is a table of {name}: caudal sql {name} "SELECT …" --data DIR'
                raise _with_notes(
                    UsageError(f"the query: no table {missing[1]}; {hint}"), error
                ) from error
        raise


def _with_notes(error: UsageError, other: UsageError) -> UsageError:
    for note in getattr(other, "__notes__", ()):
        error.add_note(note)
    return error
