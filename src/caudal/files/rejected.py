"""The rejected rows of one piece in line order, and the bounds on how many are stored.

A batch of 16 MiB may hold eight million damaged lines, and SQL may give each rejected row its own
reason. Rejected rows therefore stay in columns; iteration creates one object at a time. The stored
part of a batch is bounded: the first lines singly, then the number of further rows per reason.
Counts stay exact for any number of rejected rows. Raw records are read only when asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from caudal.files.raw_records import RawRecords, no_records
from caudal.files.rejected_records import bounded, first_places
from caudal.formats.mapped import REJECTS_SCHEMA
from caudal.kernels.csv import DamagedLines
from caudal.model import RejectedRow

MOST_LINES = 100_000  # stored singly, per batch
MOST_REASONS = 1_000  # distinct reasons for the counts of the other rows
MOST_TEXT_BYTES = 16 << 20  # of reasons, for the lines and for the counts each
OTHER = "other reasons"  # counts the rows beyond MOST_REASONS distinct reasons

_AT_A_TIME = 10_000


@dataclass(frozen=True)
class RejectedRows:
    """Rejected rows: row i is on lines[i] and has the reason reasons[codes[i]].

    `raw` reads the records of some lines again.
    """

    table: str
    file: str
    lines: NDArray[np.int64]
    codes: NDArray[np.int64]
    reasons: pa.Array
    raw: RawRecords = field(default=no_records, repr=False)

    @classmethod
    def of(
        cls,
        table: str,
        file: str,
        damaged: DamagedLines,
        lines: NDArray[np.int64] | None = None,
        reasons: pa.Array | None = None,
    ) -> Self:
        """Combine the lines that the reader found damaged with the rows that the SQL rejects."""
        if lines is None or reasons is None:
            return cls(table, file, damaged.lines, damaged.codes, pa.array(damaged.reasons))
        told = reasons.cast(pa.string()).dictionary_encode()
        codes = told.indices.to_numpy().astype(np.int64) + len(damaged.reasons)
        together = np.concatenate([damaged.lines, lines])
        order = np.argsort(together, kind="stable")
        names = pa.concat_arrays([pa.array(damaged.reasons, pa.string()), told.dictionary])
        return cls(
            table, file, together[order], np.concatenate([damaged.codes, codes])[order], names
        )

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[RejectedRow]:
        for start in range(0, len(self), _AT_A_TIME):
            part = slice(start, start + _AT_A_TIME)
            reasons = self.reasons.take(pa.array(self.codes[part])).to_pylist()
            for line, reason in zip(self.lines[part].tolist(), reasons, strict=True):
                yield RejectedRow(self.table, self.file, line, reason)

    def with_records(self, records: pa.Array) -> pa.Table:
        """Return all rows with their raw records, as a dataset keeps them."""
        reasons = self.reasons.take(pa.array(self.codes)).cast(pa.string())
        names = [pa.array([text] * len(self), pa.string()) for text in (self.table, self.file)]
        columns = [*names, pa.array(self.lines, pa.int64()), reasons, records]
        return pa.table(columns, names=["table", "file", "line", "reason", "record"])

    def first_records(self) -> dict[int, str]:
        """Return by line the records of the first rows of each reason (rejected_records.py)."""
        if not len(self):
            return {}
        places = first_places(self.codes[:MOST_LINES])
        lines = np.sort(self.lines[places])
        found = dict(zip(lines.tolist(), self.raw(lines).to_pylist(), strict=True))
        return bounded((line, found[line]) for line in self.lines[places].tolist())

    def kept(self) -> pa.Table:
        """Return the part that a mapped object stores (docs/formats/mapped.md)."""
        import pyarrow.compute as pc

        sizes = pc.binary_length(self.reasons).to_numpy(zero_copy_only=False).astype(np.int64)
        first = self.codes[:MOST_LINES]
        count = int(np.searchsorted(np.cumsum(sizes[first]), MOST_TEXT_BYTES, side="right"))
        alone = [
            pa.array(self.lines[:count]),
            self.reasons.take(pa.array(first[:count])),
            pa.array(np.ones(count, np.int64)),
        ]
        tables = [pa.table(alone, schema=REJECTS_SCHEMA)]
        if count < len(self):
            tables.append(self._counted(self.codes[count:], sizes))
        return pa.concat_tables(tables)

    def _counted(self, codes: NDArray[np.int64], sizes: NDArray[np.int64]) -> pa.Table:
        """Return the number of rows per reason, most frequent first."""
        counts = np.bincount(codes, minlength=len(self.reasons))
        order = np.argsort(-counts, kind="stable")[:MOST_REASONS]
        order = order[counts[order] > 0]
        named = order[np.cumsum(sizes[order]) <= MOST_TEXT_BYTES]
        rest = int(counts.sum() - counts[named].sum())
        reasons = self.reasons.take(pa.array(named)).to_pylist() + [OTHER] * (rest > 0)
        rows = counts[named].tolist() + [rest] * (rest > 0)
        return pa.table([[0] * len(rows), reasons, rows], schema=REJECTS_SCHEMA)
