"""Reading of process logs: the newest lines, and the lines added later."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_BLOCK = 1 << 16
_LOOK_SECONDS = 0.25


def earlier_part(log: Path) -> Path:
    """Return where the newest part of a log stays when it is shortened."""
    return log.with_suffix(".log.1")


def newest_lines(log: Path, count: int) -> tuple[list[str], int]:
    """Return the newest whole lines and the log's size; ([], 0) if there is no file.

    If the log was shortened a short time ago, some of them are in its earlier part.
    """
    data, is_whole, end = _newest(log, count)
    lines = data.count(b"\n")
    if is_whole and lines < count:
        before, _, _ = _newest(earlier_part(log), count - lines)
        data = _without_first_line(before) + data  # it was cut anywhere
    elif not is_whole:
        data = _without_first_line(data)
    return _text(data).splitlines()[-count:], end


def _newest(path: Path, count: int) -> tuple[bytes, bool, int]:
    """Return bytes with at least that many whole lines, whether they are all, and the size."""
    try:
        with path.open("rb") as file:
            end = place = file.seek(0, os.SEEK_END)
            data = b""
            while place > 0 and data.count(b"\n") <= count:
                begin = max(0, place - _BLOCK)
                file.seek(begin)
                data, place = file.read(place - begin) + data, begin
    except OSError:
        return b"", True, 0
    return data, place == 0, end


def _without_first_line(data: bytes) -> bytes:
    return data.partition(b"\n")[2]


def added_lines(
    path: Path, place: int, pause: Callable[[], None] = lambda: time.sleep(_LOOK_SECONDS)
) -> Iterator[str]:
    """Yield the lines written from `place` on, without end.

    A log that became shorter, or was created anew, is read from its beginning.
    """
    begun = b""
    while True:
        try:
            with path.open("rb") as file:
                if file.seek(0, os.SEEK_END) < place:
                    place, begun = 0, b""
                file.seek(place)
                data = file.read(_BLOCK)
        except FileNotFoundError:
            data = b""
        place += len(data)
        *lines, begun = (begun + data).split(b"\n")
        yield from map(_text, lines)
        if not data:
            pause()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
