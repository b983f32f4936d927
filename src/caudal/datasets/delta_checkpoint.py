"""Checkpoints of Delta logs: everything that the commits of a table say up to a version.

A reader without them reads every commit: half a millisecond of CPU time each, and ten thousand
reads over a network. A checkpoint is a pure function of the contents at its version, as a commit is
one of its version, so anyone may write it. Its bytes depend on the release of the Parquet library;
whichever comes first stays. Nothing of Caudal reads it.

There is no `_last_checkpoint`, which would have to be replaced with every checkpoint. It is only a
hint: readers list the log anyway, to find newer commits.
"""

import io
from typing import Any

import pyarrow as pa

from caudal.datasets.contents import Contents
from caudal.datasets.delta import creation

_TEXTS = pa.map_(pa.string(), pa.string())
_SCHEMA = pa.schema(
    [
        ("txn", pa.struct([("appId", pa.string()), ("version", pa.int64()),
                           ("lastUpdated", pa.int64())])),
        ("add", pa.struct([("path", pa.string()), ("partitionValues", _TEXTS),
                           ("size", pa.int64()), ("modificationTime", pa.int64()),
                           ("dataChange", pa.bool_()), ("stats", pa.string())])),
        ("remove", pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()),
                              ("dataChange", pa.bool_())])),
        ("metaData", pa.struct([("id", pa.string()), ("name", pa.string()),
                                ("format", pa.struct([("provider", pa.string()),
                                                      ("options", _TEXTS)])),
                                ("schemaString", pa.string()),
                                ("partitionColumns", pa.list_(pa.string())),
                                ("createdTime", pa.int64()), ("configuration", _TEXTS)])),
        ("protocol", pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32()),
                                ("readerFeatures", pa.list_(pa.string())),
                                ("writerFeatures", pa.list_(pa.string()))])),
    ]
)  # fmt: skip


def delta_checkpoint(contents: Contents, table: str) -> bytes:
    """Return the checkpoint of a table's Delta log at the version of these contents."""
    import pyarrow.parquet as pq

    actions = [*creation(contents.head, table), *_adds(contents, table), *_txns(contents)]
    written = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(actions, schema=_SCHEMA), written, compression="snappy")
    return written.getvalue()


def _adds(contents: Contents, table: str) -> list[dict[str, Any]]:
    return [
        {
            "add": {
                "path": file.path,
                "partitionValues": {},
                "size": file.bytes,
                "modificationTime": contents.history[file.added].time,
                "dataChange": False,
                "stats": file.stats or None,
            }
        }
        for file in contents.tables[table]
    ]


def _txns(contents: Contents) -> list[dict[str, Any]]:
    return [
        {"txn": {"appId": one.load, "version": one.number, "lastUpdated": one.time}}
        for one in contents.history
        if one.kind == "load"
    ]
