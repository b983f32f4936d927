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


def encode(result: Result, form: Format) -> Iterator[bytes]:
    """Yield one result in a format."""
    return encode_rows([result.table], form, result.name)


def encode_rows(
    parts: Iterable["pa.Table"], form: Format, name: str = "the result"
) -> Iterator[bytes]:
    """Yield the rows of a query in a format; CSV if the format is for a screen."""
    if form is Format.PARQUET:
        return representations.parquet_of(representations.in_groups(parts), name)
    if form is Format.ARROW:
        return representations.arrow_of(representations.in_groups(parts))
    from caudal.results import text_formats

    writers: dict[Format, Callable[[Iterable[pa.Table]], Iterator[bytes]]] = {
        Format.JSON: text_formats.json_of,
        Format.JSONL: text_formats.json_lines_of,
        Format.MARKDOWN: text_formats.markdown_of,
    }
    return writers.get(form, text_formats.csv_of)(parts)


def json_object(answers: Mapping[str, Iterable["pa.Table"]]) -> Iterator[bytes]:
    """Yield one JSON object with an array of rows per answer."""
    from caudal.results.text_formats import json_of

    before = "{\n "
    for name, parts in answers.items():
        last = f"{before}{json_text(name, None)}: ".encode()
        for piece in json_of(parts, depth=1):
            yield last
            last = piece
        yield last.rstrip(b"\n")
        before = ",\n "
    yield b"\n}\n" if answers else b"{}\n"
