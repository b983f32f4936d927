"""Rows to hashes, and hashes to partitions.

`docs/formats/hash.md` is the specification, with test vectors. Nothing here or in this folder may
change an existing hash without a new HASH_VERSION: rows of one key would get into two partitions.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from caudal.errors import UsageError
from caudal.kernels.hashing.values import Hashes, hash_column, hash_structs_of

HASH_VERSION = 1

MAX_PARTITIONS = 2**31 - 1


def partition_of(
    columns: Sequence[pa.Array | pa.ChunkedArray], partitions: int
) -> NDArray[np.int32]:
    """Return the partition of each row, from 0 to `partitions` - 1, by the hash of its values."""
    if not 1 <= partitions <= MAX_PARTITIONS:
        raise UsageError(f"{partitions} partitions are impossible: ask for 1 to {MAX_PARTITIONS}")
    half = np.uint64(32)
    scaled = (hash_rows(columns) >> half) * np.uint64(partitions)
    return (scaled >> half).astype(np.int32)


def hash_rows(columns: Sequence[pa.Array | pa.ChunkedArray]) -> Hashes:
    """Return the hash of each row: that of the struct of its values, in the order of the columns.

    Values of one type that SQL calls equal hash equal, and so do integers and decimals of equal
    value, whatever their types. An integer and a float do not: cast keys to a common type first.
    """
    if len({len(column) for column in columns}) != 1:
        raise UsageError("a row's hash needs at least one column, and columns of equal length")
    hashes = [hash_column(column) for column in columns]
    return hash_structs_of(hashes, np.ones(len(columns[0]), np.bool_))
