"""The tables of an application in a dataset: how their rows are cleaned, and the rejected rows."""

from collections.abc import Iterable

import msgspec

from caudal.datasets.documents import DatasetHead, DatasetTable
from caudal.datasets.keys import REJECTS
from caudal.errors import UsageError
from caudal.formats.digest import digest
from caudal.formats.job import Text
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


def described_table(table: Table, columns: Iterable[tuple[str, str]], model: str) -> DatasetTable:
    """Return what a dataset says of a table, with everything that another load of it needs."""
    return DatasetTable(
        table.name,
        tuple(columns),
        _cleaning_digest(table, model),
        table.sql,
        table.columns,
        _scored(table, model),
    )


def text_of(head: DatasetHead) -> Text:
    """Return the application of a dataset, without queries: what a load or a question names.

    Raise UsageError for a dataset of an earlier version, which has only digests of its SQL.
    """
    held = [one for one in head.tables if one.cleaning]
    if not all(one.sql for one in held):
        raise UsageError(
            f"this dataset was made by an earlier version, which did not keep the SQL of "
            f"{head.application}: use the command line with the application, or load it anew"
        )
    tables = tuple(Table(one.name, (), one.reads, one.sql, one.name) for one in held)
    text = Text(head.application, "", tables, ())
    models = [one.sentiment for one in held if one.sentiment]
    return msgspec.structs.replace(text, sentiment=models[0]) if models else text


def _cleaning_digest(table: Table, model: str) -> str:
    return digest(msgspec.json.encode([table.sql, table.columns, _scored(table, model)]))


def _scored(table: Table, model: str) -> str:
    return model if "sentiment" in table.sql.lower() else ""
