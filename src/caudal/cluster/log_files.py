"""Reading of process logs: the newest lines, and the lines added later."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_BLOCK = 1 << 16
_LOOK_SECONDS = 0.25


def newest_lines(path: Path, count: int) -> tuple[list[str], int]:
    """Return the newest whole lines and the file's size; ([], 0) if there is no file."""
    try:
        with path.open("rb") as file:
            end = place = file.seek(0, os.SEEK_END)
            data = b""
            while place > 0 and data.count(b"\n") <= count:
                begin = max(0, place - _BLOCK)
                file.seek(begin)
                data, place = file.read(place - begin) + data, begin
    except OSError:
        return [], 0
    if place > 0:
        data = data.partition(b"\n")[2]  # the first line may be incomplete
    return _text(data).splitlines()[-count:], end


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
