"""Output formats of results."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from caudal.results import representations
from caudal.results.answers import Result
from caudal.results.values import json_text

if TYPE_CHECKING:
    import pyarrow as pa


class Format(StrEnum):
    """An output format."""

    TABLE = "table"
    FIELDS = "fields"  # one line per field
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    MARKDOWN = "markdown"
    PARQUET = "parquet"
    ARROW = "arrow"

    @property
    def ending(self) -> str:
        """Return how the names of files of this format end."""
        return ".md" if self is Format.MARKDOWN else f".{self.value}"


SCREEN = frozenset({Format.TABLE, Format.FIELDS})  # for people; files get CSV instead
BINARY = frozenset({Format.PARQUET, Format.ARROW})
ENDINGS = {form.ending: form for form in Format if form not in SCREEN} | {".ndjson": Format.JSONL}

_OF_RESULT: dict[Format, Callable[[Result], Iterator[bytes]]] = {
    Format.PARQUET: representations.parquet_pieces,
    Format.ARROW: representations.arrow_pieces,
}
_OF_ROWS: dict[Format, Callable[[Iterable["pa.Table"]], Iterator[bytes]]] = {
    Format.TABLE: representations.csv_of,
    Format.FIELDS: representations.csv_of,
    Format.JSON: representations.json_of,
    Format.JSONL: representations.json_lines_of,
    Format.CSV: representations.csv_of,
    Format.MARKDOWN: representations.markdown_of,
}


def encode(result: Result, form: Format) -> Iterator[bytes]:
    """Yield one result in a format."""
    if form in BINARY:
        return _OF_RESULT[form](result)
    return encode_rows([result.table], form)


def encode_rows(parts: Iterable["pa.Table"], form: Format) -> Iterator[bytes]:
    """Yield rows in a text format."""
    return _OF_ROWS[form](parts)


def json_object(answers: Mapping[str, Iterable["pa.Table"]]) -> Iterator[bytes]:
    """Yield one JSON object with an array of rows per answer."""
    before = "{\n "
    for name, parts in answers.items():
        last = f"{before}{json_text(name, None)}: ".encode()
        for piece in representations.json_of(parts, depth=1):
            yield last
            last = piece
        yield last.rstrip(b"\n")
        before = ",\n "
    yield b"\n}\n" if answers else b"{}\n"
