"""The rows of one piece that were left out, in the order of lines; and how many of them are kept.

A batch of 16 MiB may hold eight million damaged lines, and SQL may give each rejected row a reason
of its own. So they stay in columns, and become objects one by one, for whoever asks. What is stored
of a batch is bounded: the first lines by themselves, and behind them how many more there were of
each reason. Counts stay exact, however many rows were rejected.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from caudal.formats.mapped import REJECTS_SCHEMA
from caudal.kernels.csv import DamagedLines
from caudal.model import RejectedRow

MOST_LINES = 100_000  # of one batch that are kept by themselves
MOST_REASONS = 1_000  # under which the others are counted
MOST_TEXT_BYTES = 16 << 20  # of the reasons of either
OTHER = "other reasons"  # under which rows are counted whose reasons are too many

_AT_A_TIME = 10_000


@dataclass(frozen=True)
class RejectedRows:
    """Row i stands on lines[i] and was left out for reasons[codes[i]]."""

    table: str
    file: str
    lines: NDArray[np.int64]
    codes: NDArray[np.int64]
    reasons: pa.Array

    @classmethod
    def of(
        cls,
        table: str,
        file: str,
        damaged: DamagedLines,
        lines: NDArray[np.int64] | None = None,
        reasons: pa.Array | None = None,
    ) -> Self:
        """Those that the reader found damaged, and those that the table's SQL rejects."""
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

    def kept(self) -> pa.Table:
        """What a mapped object holds of them (docs/formats/mapped.md)."""
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
        """How many rows there are of each reason, the most frequent first."""
        counts = np.bincount(codes, minlength=len(self.reasons))
        order = np.argsort(-counts, kind="stable")[:MOST_REASONS]
        order = order[counts[order] > 0]
        named = order[np.cumsum(sizes[order]) <= MOST_TEXT_BYTES]
        rest = int(counts.sum() - counts[named].sum())
        reasons = self.reasons.take(pa.array(named)).to_pylist() + [OTHER] * (rest > 0)
        rows = counts[named].tolist() + [rest] * (rest > 0)
        return pa.table([[0] * len(rows), reasons, rows], schema=REJECTS_SCHEMA)
