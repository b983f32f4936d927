"""The CSV reader: records, batches of records, columns of text."""

from caudal.kernels.csv.batches import (
    DEFAULT_BATCH_BYTES,
    Batch,
    Found,
    Stream,
    cut_batches,
    whole_bytes,
)
from caudal.kernels.csv.columns import (
    NO_DAMAGE,
    DamagedLines,
    Later,
    Numbers,
    TextColumns,
    read_batch,
)
from caudal.kernels.csv.header import Header, read_header
from caudal.kernels.csv.numbers import NumberColumn

__all__ = [
    "DEFAULT_BATCH_BYTES",
    "NO_DAMAGE",
    "Batch",
    "DamagedLines",
    "Found",
    "Header",
    "Later",
    "NumberColumn",
    "Numbers",
    "Stream",
    "TextColumns",
    "cut_batches",
    "read_batch",
    "read_header",
    "whole_bytes",
]
