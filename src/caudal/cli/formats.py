"""Output formats of results, and writing one file per query."""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path

from caudal.cli.files import whole_file
from caudal.results import representations
from caudal.results.answers import Result


class Format(StrEnum):
    """An output format."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"


BINARY = frozenset({Format.PARQUET, Format.ARROW})
_PIECES: dict[Format, Callable[[Result], Iterator[bytes]]] = {
    Format.TABLE: representations.csv_pieces,
    Format.JSON: representations.json_pieces,
    Format.CSV: representations.csv_pieces,
    Format.PARQUET: representations.parquet_pieces,
    Format.ARROW: representations.arrow_pieces,
}


def encode(result: Result, form: Format) -> bytes:
    """Return one result encoded in a format."""
    return b"".join(_PIECES[form](result))


def write_results(results: Mapping[str, Result], folder: Path, form: Format) -> list[Path]:
    """Write one file per query; return the paths."""
    form = Format.CSV if form is Format.TABLE else form
    written = []
    for name, result in results.items():
        path = folder / f"{name}.{form.value}"
        with whole_file(path) as file:
            for piece in _PIECES[form](result):
                file.write(piece)
        written.append(path)
    return written
