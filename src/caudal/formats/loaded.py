"""The output of a map of a load, on its way from the worker's engine to the store.

It is a mapped object (mapped.py) whose body goes on behind its streams, with the Parquet files of
the batch: its rows, then its rejected rows. `taken_apart` returns the files and the object without
them, which the store keeps once the files are in the dataset.
"""

from collections.abc import Sequence

import msgspec

from caudal.errors import FormatError
from caudal.formats import frame
from caudal.formats.digest import digest
from caudal.formats.loads import LoadedBatch, StoredFile
from caudal.formats.mapped import MAGIC, Index


def put_together(mapped: bytes, loaded: LoadedBatch, files: Sequence[bytes]) -> bytes:
    """Return a mapped object without slices with the files that `loaded` names behind it."""
    index, body = frame.decode(frame.of_bytes(mapped), MAGIC, Index, "a mapped batch")
    return b"".join((_headed(index, loaded), mapped[body:], *files))


def taken_apart(data: bytes) -> tuple[LoadedBatch, dict[str, bytes]]:
    """Return what a batch gave, and the bytes of its files by path, checked."""
    index, body = frame.decode(frame.of_bytes(data), MAGIC, Index, "a loaded batch")
    if index.loaded is None:
        raise FormatError("a batch of a load lacks what it gave")
    at = body + _streams_length(index)
    found: dict[str, bytes] = {}
    for file in named_files(index.loaded):
        found[file.path] = data[at : at + file.bytes]
        if len(found[file.path]) != file.bytes or digest(found[file.path]) != file.digest:
            raise FormatError("a batch of a load is damaged: a file does not match its digest")
        at += file.bytes
    return index.loaded, found


def without_files(data: bytes, loaded: LoadedBatch) -> bytes:
    """Return the mapped object that names the files but does not hold them."""
    index, body = frame.decode(frame.of_bytes(data), MAGIC, Index, "a loaded batch")
    return b"".join((_headed(index, loaded), data[body : body + _streams_length(index)]))


def _streams_length(index: Index) -> int:
    return sum(span.length for span in index.reported)


def named_files(loaded: LoadedBatch) -> list[StoredFile]:
    return [one for one in (loaded.rows, loaded.rejects) if one is not None]


def _headed(index: Index, loaded: LoadedBatch) -> bytes:
    return frame.encode(MAGIC, msgspec.structs.replace(index, loaded=loaded))
