"""Write the files of an application at any scale.

The order of steps that keeps the directory clean:

1. Write every file completely under a temporary name in the same directory.
2. Only then rename all of them, so that a complete new set replaces an old one.
3. Always remove the temporary names at the end, also after an error.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from caudal.errors import OutputError, UsageError
from caudal.generate import films, ratings, volumes
from caudal.generate.books import books_sheet
from caudal.generate.credits import credits_sheet
from caudal.generate.dice import Dice
from caudal.generate.movies import movies_sheet
from caudal.generate.ratings import ratings_sheet
from caudal.generate.reviews import reviews_sheet
from caudal.generate.sheet import Sheet, chunks, header_line

Progress = Callable[[str, int, int], None]

LARGEST_SCALE = 80.0
"""The limit for `scale`.

Above it a file would have more rows than the random numbers can address.
"""


@dataclass(frozen=True)
class Generated:
    """A file that was written."""

    path: Path
    rows: int
    bytes: int

    @property
    def table(self) -> str:
        """The name of the file without its suffix."""
        return self.path.stem


def generate(
    app: str, *, scale: float, seed: int, out: Path, progress: Progress | None = None
) -> list[Generated]:
    """Write the files of an application to a directory. Scale 1 is the size of the originals.

    The same application, scale and seed give the same bytes on every machine. Memory does not grow
    with the scale. `progress` is called after every chunk with the name of the file, the number of
    records written and the total number of records.
    """
    dice = Dice(seed)
    sheets = _sheets(app, scale, dice)
    partial = {sheet.name: out / f"{sheet.name}.partial" for sheet in sheets}
    try:
        out.mkdir(parents=True, exist_ok=True)
        try:
            sizes = [_write(sheet, dice, partial[sheet.name], progress) for sheet in sheets]
            for name, path in partial.items():
                path.replace(out / name)
        finally:
            for path in partial.values():
                path.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot write to {out}: {error.strerror}; choose another --out"
        ) from error
    return [Generated(out / s.name, s.rows, size) for s, size in zip(sheets, sizes, strict=True)]


def _write(sheet: Sheet, dice: Dice, path: Path, progress: Progress | None) -> int:
    """Write one file and return its size in bytes."""
    done = 0
    with path.open("wb") as file:
        file.write(header_line(sheet))
        for rows, content in chunks(sheet, dice):
            file.write(content)
            done += rows
            if progress is not None:
                progress(sheet.name, done, sheet.rows)
        return file.tell()


def _sheets(app: str, scale: float, dice: Dice) -> Sequence[Sheet]:
    if app not in _APPS:
        raise UsageError(f"there is no generator for {app!r}; choose one of: {', '.join(_APPS)}")
    if not 0 < scale <= LARGEST_SCALE:
        raise UsageError(f"scale must be above 0 and at most {LARGEST_SCALE:g}, not {scale:g}")
    return _APPS[app](scale, dice)


def _movies(scale: float, dice: Dice) -> Sequence[Sheet]:
    count = _scaled(films.FILMS, scale)
    return (
        movies_sheet(dice, count),
        credits_sheet(dice, count),
        ratings_sheet(dice, _scaled(ratings.RATINGS, scale), count),
    )


def _books(scale: float, dice: Dice) -> Sequence[Sheet]:
    books, reviews = _scaled(volumes.BOOKS, scale), _scaled(volumes.REVIEWS, scale)
    catalogue = volumes.Catalogue(dice, books, reviews)
    return books_sheet(catalogue), reviews_sheet(catalogue)


def _scaled(rows: int, scale: float) -> int:
    return max(1, math.floor(rows * scale))


_APPS: Mapping[str, Callable[[float, Dice], Sequence[Sheet]]] = {
    "movies": _movies,
    "books": _books,
}
