"""Read files of a dataset with the values of computed columns, on several threads.

Rules
1. First the columns are read that say which rows are seen. The texts are read only if a value that
   is needed is not known, and only those values are computed.
2. Values belong to rows by their place in a file. DuckDB states the place of each row that it
   reads; rows in another order are refused, never matched with values of others.
3. What was computed is kept with the dataset (datasets/computed.py).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from caudal.datasets.computed import KeptValues, Values, kept_values
from caudal.datasets.contents import HeldFile
from caudal.duck.arrow_casts import carried
from caudal.duck.database import (
    Connection,
    DuckDBError,
    DuckDBMemoryError,
    Relation,
    one_line,
)
from caudal.embedded.dataset_views import PLACE, parquet_rows
from caudal.errors import FormatError, MemoryExceededError, QueryError
from caudal.kernels.sentiment import load_model
from caudal.model import LEXICON
from caudal.sql.quoting import quote
from caudal.sql.table_needs import ComputedColumn
from caudal.store.port import Store

_BATCH_BYTES = 8 << 20  # small files are read together
_BATCH_ROWS = 500_000
_PART_ROWS = 20_000  # texts that are in memory at a time

Flags = NDArray[np.bool_]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Sight:
    """What the queries of a table see: columns, and SQL that says whether a row is seen, and
    whether its value of a computed column is needed."""

    kept: Mapping[str, str]
    computed: tuple[ComputedColumn, ...]
    needed: tuple[str, ...]
    seen: str

    @property
    def kept_names(self) -> list[str]:
        return [f"k{place}" for place in range(len(self.kept))]

    @property
    def value_names(self) -> list[str]:
        return [f"v{place}" for place in range(len(self.computed))]

    def select(self, paths: Sequence[Path]) -> str:
        """Return the SQL for all rows of files: kept columns, and what is asked of each row."""
        listed = [
            f"{quote(name)} AS {short}"
            for name, short in zip(self.kept, self.kept_names, strict=True)
        ]
        listed += [
            f"{text} AS {name}" for text, name in zip(self.needed, self.value_names, strict=True)
        ]
        listed += [f"{self.seen} AS seen", f"{PLACE} AS place"]
        return f"SELECT {', '.join(listed)} FROM {parquet_rows(paths, with_places=True)}"

    def select_texts(self, paths: Sequence[Path], number: int) -> str:
        """Return the SQL for the texts that a computed column is made of, where it is needed."""
        text = f"CASE WHEN {self.needed[number]} THEN {quote(self.computed[number].column)} END"
        return f"SELECT {text}, {PLACE} FROM {parquet_rows(paths, with_places=True)}"


@dataclass(frozen=True)
class FileBatch:
    """Consecutive files that are read together."""

    files: tuple[HeldFile, ...]
    paths: tuple[Path, ...]

    @cached_property
    def places(self) -> Places:
        """The place of each row in its file."""
        return np.concatenate([np.arange(file.rows, dtype=np.int64) for file in self.files])

    def split(self) -> Iterator[tuple[HeldFile, slice]]:
        """Yield the files, each with its rows."""
        start = 0
        for file in self.files:
            yield file, slice(start, start + file.rows)
            start += file.rows


def file_batches(files: Sequence[HeldFile], paths: Sequence[Path]) -> list[FileBatch]:
    """Cut the files of a table into batches, in their order."""
    cut: list[list[tuple[HeldFile, Path]]] = []
    size = rows = 0
    for one in zip(files, paths, strict=True):
        size, rows = size + one[0].bytes, rows + one[0].rows
        if not cut or size > _BATCH_BYTES or rows > _BATCH_ROWS:
            cut.append([])
            size, rows = one[0].bytes, one[0].rows
        cut[-1].append(one)
    return [FileBatch(*zip(*batch, strict=True)) for batch in cut]


@dataclass
class FileValues:
    """Reads batches of files of one table. Thread-safe."""

    connection: Connection
    store: Store
    sight: Sight
    kept: list[KeptValues] = field(init=False)

    def __post_init__(self) -> None:
        self.kept = [
            kept_values(self.store, one.function, one.column) for one in self.sight.computed
        ]

    def read(self, batch: FileBatch) -> pa.Table:
        """Return all rows of the files, with values where they are needed and null elsewhere."""
        cursor = self.connection.cursor()
        try:
            rows = carried(cursor.sql(self.sight.select(batch.paths)))
            _require_places(rows.column("place"), slice(None), batch)
            for number, name in enumerate(self.sight.value_names):
                needed = rows.column(name).to_numpy().astype(np.bool_)
                values = self._values(cursor, batch, number, needed)
                column = pa.array(values.value, mask=~needed)
                rows = rows.set_column(rows.column_names.index(name), name, column)
            return rows
        except DuckDBMemoryError as error:
            raise MemoryExceededError(one_line(error)) from None
        except DuckDBError as error:
            raise QueryError(one_line(error)) from None
        finally:
            cursor.close()

    def _values(self, cursor: Connection, batch: FileBatch, number: int, needed: Flags) -> Values:
        """Return the values of the rows; compute and keep those that are needed and not known."""
        kept = self.kept[number]
        found = [kept.of(file) for file in batch.files]
        known = np.concatenate([one.known for one in found])
        value = np.concatenate([one.value for one in found])
        missing = needed & ~known
        if missing.any():
            texts = cursor.sql(self.sight.select_texts(batch.paths, number))
            _score(texts, batch, missing, value)
            known = known | missing
            for file, rows in batch.split():
                if missing[rows].any():
                    kept.keep(file, Values(known[rows], value[rows]))
        return Values(known, value)


def _score(texts: Relation, batch: FileBatch, missing: Flags, value: NDArray[np.float64]) -> None:
    """Compute the missing values, some rows at a time."""
    model = load_model(LEXICON)
    start = 0
    for part in texts.to_arrow_reader(_PART_ROWS):
        rows = slice(start, start + part.num_rows)
        _require_places(part.column(1), rows, batch)
        if missing[rows].any():
            chosen = part.column(0).filter(pa.array(missing[rows]))
            value[rows][missing[rows]] = model.score(chosen)
        start = rows.stop
    if start != len(missing):
        raise _other_rows(batch)


def _require_places(stated: pa.Array | pa.ChunkedArray, rows: slice, batch: FileBatch) -> None:
    """Raise FormatError unless these are the rows of the files, in their order (rule 2)."""
    if not np.array_equal(stated.to_numpy(), batch.places[rows]):
        raise _other_rows(batch)


def _other_rows(batch: FileBatch) -> FormatError:
    return FormatError(
        f"{batch.paths[0]} or a file next to it holds other rows than its version states: "
        "restore it from a copy of the dataset"
    )
