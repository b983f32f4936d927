"""The same SQL in plain DuckDB, straight on the CSV files, query by query.

Tables are views: DuckDB's CSV reader, the application's cleaning, and the rejected rows left out.
It uses every core and reads only the columns that a query mentions. Records of the wrong width
are dropped by the reader itself (`ignore_errors`).
"""

from pathlib import Path
from typing import Any

import duckdb

from bench.answers import Answers, Row
from caudal.application import find_application
from caudal.duck.functions import register_functions
from caudal.kernels.sentiment import load_model
from caudal.model import Application, Query, Table
from caudal.sql.parameters import bind_parameters

_VIEW = """
CREATE VIEW {name} AS
WITH raw AS (
    FROM read_csv(
        '{path}', all_varchar = true, header = true, delim = ',', quote = '"', escape = '"',
        ignore_errors = true
    )
)
SELECT * EXCLUDE (reject) FROM ({cleaning}
) WHERE reject IS NULL
"""


def answer(app: str, folder: Path) -> Answers:
    application = find_application(app)
    with duckdb.connect() as connection:
        register_functions(connection, load_model(application.sentiment))
        for table in application.tables:
            connection.execute(_view(table, folder))
        return {query.name: _rows(connection, application, query) for query in application.queries}


def _view(table: Table, folder: Path) -> str:
    return _VIEW.format(name=table.name, path=folder / table.files[0], cleaning=table.sql)


def _rows(
    connection: duckdb.DuckDBPyConnection, application: Application, query: Query
) -> list[Row]:
    sql = bind_parameters(query.sql, application.parameters, query.origin)
    cursor = connection.execute(sql)
    names = [column[0] for column in cursor.description or ()]
    return [_row(names, values) for values in cursor.fetchall()]


def _row(names: list[str], values: tuple[Any, ...]) -> Row:
    return dict(zip(names, values, strict=True))
