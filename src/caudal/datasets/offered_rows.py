"""Rows of a program that somebody wants to append. They are known by a key, not by their content:
ADR 56.

The same rows may be appended twice on purpose. So rows without a key are another source each time,
and rows with a key are loaded once, whoever repeats the append. A load that was killed goes on only
with the same rows: the id of a load is derived from their content, too.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from caudal.datasets.sources import Offered
from caudal.errors import UsageError
from caudal.files.pieces import require_columns
from caudal.formats.digest import Digesting, digest
from caudal.model import Application

NAME = "appended rows"
_PIECE_ROWS = 65_536


@dataclass(frozen=True)
class OfferedRows:
    """Rows that are in memory."""

    offered: Offered
    rows: pa.Table = field(repr=False)

    def pieces(self, columns: Sequence[str], piece_bytes: int) -> Iterator[tuple[int, pa.Table]]:
        """Yield the rows piece by piece, each with the number of its first row, counted from 1.

        The same rows give the same pieces. Without rows, there is one empty piece.
        """
        require_columns(self.rows.column_names, columns, NAME, self.offered.table)
        wanted = self.rows.select(columns)
        fitting = wanted.num_rows * piece_bytes // max(1, wanted.nbytes)
        step = max(1, min(_PIECE_ROWS, fitting))
        for start in range(0, max(1, wanted.num_rows), step):
            yield start + 1, wanted.slice(start, step)


def offered_rows(app: Application, table: str, rows: Any, key: str | None) -> OfferedRows:
    """Return rows as a source: dictionaries, an Arrow table, a Polars or pandas frame."""
    known = [one.name for one in app.tables]
    if table not in known:
        raise UsageError(f"{app.name} has no table {table!r}; its tables are: {', '.join(known)}")
    held = _arrow(rows).replace_schema_metadata(None)
    name = f"{NAME} {key}" if key is not None else f"{NAME} {uuid.uuid4()}"
    content = _content(held) if key is not None else ""
    known_by = digest(name.encode())
    return OfferedRows(Offered(table, name, held.nbytes, known_by, name, content), held)


def stream_of(rows: pa.Table) -> pa.Buffer:
    """Return rows as one Arrow stream. The same rows give the same bytes, however they are held."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    return sink.getvalue()


def _content(rows: pa.Table) -> str:
    found = Digesting()
    for start in range(0, max(1, rows.num_rows), _PIECE_ROWS):
        found.update(memoryview(stream_of(rows.slice(start, _PIECE_ROWS))))
    return found.value


def _arrow(rows: Any) -> pa.Table:
    """Convert rows to an Arrow table; raise UsageError for anything that holds no rows."""
    try:
        if isinstance(rows, pa.Table):
            return rows
        if hasattr(rows, "__arrow_c_stream__"):
            return pa.table(rows)
        if hasattr(rows, "to_arrow"):
            return rows.to_arrow()
        if hasattr(rows, "iterrows"):
            return pa.Table.from_pandas(rows, preserve_index=False)
        listed = list(rows)
        names = list(dict.fromkeys(name for row in listed for name in row))
        texts = [[_text(row.get(name)) for row in listed] for name in names]
        return pa.table([pa.array(one, pa.string()) for one in texts], names=names)
    except (TypeError, AttributeError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise UsageError(
            f"append takes rows: dictionaries, an Arrow table or a frame ({reason})"
        ) from None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
