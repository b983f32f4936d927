"""CSV to the letter: records, batches of records, columns of text."""

from caudal.kernels.csv.batches import DEFAULT_BATCH_BYTES, Batch, Stream, cut_batches
from caudal.kernels.csv.columns import NumberColumn, Numbers, TextColumns, read_batch
from caudal.kernels.csv.header import Header, read_header

__all__ = [
    "DEFAULT_BATCH_BYTES",
    "Batch",
    "Header",
    "NumberColumn",
    "Numbers",
    "Stream",
    "TextColumns",
    "cut_batches",
    "read_batch",
    "read_header",
]
