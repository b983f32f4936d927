"""The outputs of fold and finish: a fold's slices, a query's rows.

    fold   = head body         frame.py, magic "CAUDALF1", index: class Folded
    result = head body         frame.py, magic "CAUDALR1", index: class Result
    body   = Arrow IPC streams at the offsets that the index states (mapped.py)

docs/formats/fold.md and result.md have examples.
"""

from collections.abc import Sequence

import msgspec
import pyarrow as pa

from caudal.formats import frame, mapped

FOLD_MAGIC = b"CAUDALF1"
RESULT_MAGIC = b"CAUDALR1"


class Folded(msgspec.Struct, frozen=True):
    """One partition of one fold, cut for its readers."""

    fold: str
    partition: int
    slices: mapped.StageIndex


class Result(msgspec.Struct, frozen=True):
    """The rows that answer a query."""

    query: str
    title: str
    rows: mapped.Span


def encode_fold(fold: str, partition: int, slices: Sequence[pa.Table]) -> bytes:
    body = bytearray()
    index = Folded(fold, partition, mapped.append_stage(body, slices))
    return frame.encode(FOLD_MAGIC, index) + bytes(body)


def decode_fold(read: frame.Read, key: str) -> tuple[Folded, int]:
    """What a fold's output says about itself, and where its body begins."""
    return frame.decode(read, FOLD_MAGIC, Folded, key)


def encode_result(query: str, title: str, rows: pa.Table) -> bytes:
    body = bytearray()
    index = Result(query, title, mapped.append_stream(body, rows))
    return frame.encode(RESULT_MAGIC, index) + bytes(body)


def describe_result(read: frame.Read, key: str) -> tuple[Result, int]:
    """What a result says about itself, and where its body begins."""
    return frame.decode(read, RESULT_MAGIC, Result, key)


def decode_result(data: bytes, key: str) -> tuple[Result, pa.Table]:
    read = frame.of_bytes(data)
    index, body = describe_result(read, key)
    return index, mapped.read_rows(mapped.read_stream(read, body, index.rows, key))
