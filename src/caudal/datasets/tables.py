"""The tables of an application in a dataset: how their rows are cleaned, and the rejected rows."""

from collections.abc import Iterable

import msgspec

from caudal.datasets.documents import DatasetTable
from caudal.datasets.keys import REJECTS
from caudal.formats.digest import digest
from caudal.model import Table

REJECTS_TABLE = DatasetTable(
    REJECTS,
    (
        ("table", "VARCHAR"),
        ("file", "VARCHAR"),
        ("line", "BIGINT"),
        ("reason", "VARCHAR"),
        ("record", "VARCHAR"),
    ),
)


def cleaning_digests(tables: Iterable[Table], model: str) -> dict[str, str]:
    """Return for each table the digest of everything that decides what becomes of its rows.

    `model` is the sentiment model.
    """
    return {table.name: _cleaning_digest(table, model) for table in tables}


def _cleaning_digest(table: Table, model: str) -> str:
    scored = model if "sentiment" in table.sql.lower() else ""
    return digest(msgspec.json.encode([table.sql, table.columns, scored]))
