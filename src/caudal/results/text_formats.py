"""Rows encoded as JSON, CSV or Markdown, in pieces. The command line and HTTP share it.

Rows arrive as a sequence of tables and become text a few at a time (`results/text_columns.py`), so
that a result of any size takes little memory (`results/weight.py`).
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from caudal.results.answers import unique
from caudal.results.text_columns import (
    TEXT,
    content,
    csv_fields,
    is_flat,
    joined,
    json_texts,
    markdown_cells,
)
from caudal.results.values import is_number, json_text
from caudal.results.weight import light_parts

_FLAT_BYTES = 4 << 20  # of rows that become text without Python values


def json_of(
    tables: Iterable[pa.Table], most_row: int | None = None, depth: int = 0
) -> Iterator[bytes]:
    """Yield the output of `json_bytes` for all rows. `depth` counts the levels around the array."""
    line = "\n" + " " * (depth + 1)
    between, begun = f",{line}", False
    for names, part in _named_parts(tables, most_row):
        keys = [f"{',' if place else '{'}{line} {json_text(name, None)}: "
                for place, name in enumerate(names)]  # fmt: skip
        rows = _json_rows(part, keys, f"{line}}}{between}", depth + 2)
        if rows:
            lead = between if begun else f"[{line}"
            yield lead.encode() + rows.removesuffix(between.encode())
            begun = True
    yield f"{line[:-1]}]\n".encode() if begun else b"[]\n"


def json_lines_of(tables: Iterable[pa.Table], most_row: int | None = None) -> Iterator[bytes]:
    """Yield one JSON object per line."""
    for names, part in _named_parts(tables, most_row):
        keys = [f"{',' if place else '{'}{json_text(name, None)}:"
                for place, name in enumerate(names)]  # fmt: skip
        yield _json_rows(part, keys, "}\n", None)


def csv_of(tables: Iterable[pa.Table], most_row: int | None = None) -> Iterator[bytes]:
    """Yield CSV; lists and structs are JSON inside their field, null is an empty field."""
    heading: bytes | None = None
    for table in tables:
        heading = _csv_heading(table.column_names) if heading is None else heading
        for part in _light_batches(table, most_row):
            yield heading + _csv_rows(part)
            heading = b""
    yield heading or b""


def markdown_of(tables: Iterable[pa.Table], most_row: int | None = None) -> Iterator[bytes]:
    """Yield a table in Markdown; values as in CSV, line breaks as `<br>`."""
    heading: bytes | None = None
    for table in tables:
        heading = _markdown_heading(table.schema) if heading is None else heading
        for part in _light_batches(table, most_row):
            cells = [markdown_cells(column) for column in part.columns]
            between = [(" | ", cell) for cell in cells[1:]]
            row = joined("| ", cells[0], *(one for pair in between for one in pair), " |\n")
            yield heading + content(row)
            heading = b""
    yield heading or b""


def _json_rows(part: pa.RecordBatch, keys: list[str], end: str, depth: int | None) -> bytes:
    """Return the rows as objects. Each key comes with what is before it, `end` after each row."""
    values = [json_texts(column, depth) for column in part.columns]
    pairs = zip(keys, values, strict=True)
    return content(joined(*(one for pair in pairs for one in pair), end))


def _csv_heading(names: list[str]) -> bytes:
    return _csv_rows(pa.record_batch([pa.array([name]) for name in names], names=names))


def _csv_rows(part: pa.RecordBatch) -> bytes:
    fields = [csv_fields(column) for column in part.columns]
    if len(fields) == 1:  # an empty line would be no row
        empty = pc.equal(pc.fill_null(fields[0], ""), "")
        return content(joined(pc.if_else(empty, pa.scalar('""', TEXT), fields[0]), "\n"))
    pairs = [(",", field) for field in fields[1:]]
    return content(joined(fields[0], *(one for pair in pairs for one in pair), "\n"))


def _markdown_heading(schema: pa.Schema) -> bytes:
    names = [markdown_cells(pa.array([name]))[0].as_py() for name in schema.names]
    rules = ["---:" if is_number(field.type) else "---" for field in schema]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (names, rules)).encode()


def _light_batches(table: pa.Table, most_row: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the rows, a few at a time: more of them if none becomes a Python value."""
    flat = all(is_flat(kind) for kind in table.schema.types)
    for part in light_parts(table, most_row, *([_FLAT_BYTES] if flat else [])):
        yield from part.to_batches()


def _named_parts(
    tables: Iterable[pa.Table], most_row: int | None
) -> Iterator[tuple[list[str], pa.RecordBatch]]:
    """Yield the rows, a few at a time, with the unique names of their columns."""
    names: list[str] = []
    for table in tables:
        names = names or unique(table.column_names)
        for part in _light_batches(table, most_row):
            yield names, part
