"""The Delta log of a table, derived from the versions of its dataset.

Rule: the commit of a table for version n is a pure function of version n (and of the table's name).
So anyone may write it, any number of times, and always writes the same bytes.

Version 0 gives the protocol and the schema. A load adds files and has a `txn` with the id of the
load. A compaction removes and adds files without a change of data. A vacuum changes nothing that a
reader of the newest version sees; its commit says only that it happened. So does the commit of a
table that a version does not touch: every table has every version number.
"""

import uuid
from typing import Any

import msgspec

from caudal.datasets.documents import DatasetHead, DatasetTable, DatasetVersion, StoredFile
from caudal.datasets.types import delta_fields, has_local_time

_OPERATIONS = {"create": "CREATE TABLE", "load": "WRITE", "compact": "OPTIMIZE", "vacuum": "VACUUM"}


def delta_commit(version: DatasetVersion, table: str) -> bytes:
    """Return the commit of a table's Delta log that belongs to a version."""
    actions = [_info(version)]
    if version.head is not None:
        actions += creation(version.head, table)
    is_load = version.kind == "load"
    for change in version.changes.get(table, ()):
        actions += [_remove(path, version.time) for path in change.remove]
        actions += [_add(file, version.time, is_change=is_load) for file in change.add]
    if is_load:
        txn = {"appId": version.load, "version": version.number, "lastUpdated": version.time}
        actions.append({"txn": txn})
    return b"".join(msgspec.json.encode(action) + b"\n" for action in actions)


def _info(version: DatasetVersion) -> dict[str, Any]:
    mode = {"mode": "Append"} if version.kind == "load" else {}
    return {
        "commitInfo": {
            "timestamp": version.time,
            "operation": _OPERATIONS[version.kind],
            "operationParameters": mode,
            "engineInfo": "caudal",
        }
    }


def creation(head: DatasetHead, table: str) -> list[dict[str, Any]]:
    """Return the actions that make a table: its protocol and its schema."""
    found = next(one for one in head.tables if one.name == table)
    fields = delta_fields(list(found.columns))
    metadata = {
        "id": str(uuid.uuid5(uuid.UUID(head.id), table)),
        "name": table,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": msgspec.json.encode({"type": "struct", "fields": fields}).decode(),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": head.created,
    }
    return [{"protocol": _protocol(found)}, {"metaData": metadata}]


def _protocol(table: DatasetTable) -> dict[str, Any]:
    if not any(has_local_time(kind) for _, kind in table.columns):
        return {"minReaderVersion": 1, "minWriterVersion": 2}
    feature = ["timestampNtz"]
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": feature,
        "writerFeatures": feature,
    }


def _add(file: StoredFile, time: int, *, is_change: bool) -> dict[str, Any]:
    return {
        "add": {
            "path": file.path,
            "partitionValues": {},
            "size": file.bytes,
            "modificationTime": time,
            "dataChange": is_change,
            "stats": file.stats,
        }
    }


def _remove(path: str, time: int) -> dict[str, Any]:
    return {"remove": {"path": path, "deletionTimestamp": time, "dataChange": False}}
