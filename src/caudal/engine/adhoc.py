"""Any SELECT that is not part of an application."""

import time
from dataclasses import replace

import duckdb

from caudal.answers import Result
from caudal.engine.catalog import describe
from caudal.engine.database import one_line, open_database
from caudal.engine.running import RunOptions
from caudal.errors import ApplicationError, QueryError, UsageError
from caudal.kernels.sentiment import load_model
from caudal.model import Application, Query

ADHOC = "sql"


def with_adhoc_query(app: Application, sql: str) -> Application:
    """The application with this SELECT as its only query."""
    return replace(app, queries=(Query(ADHOC, sql, clean_statement(sql), "the query"),))


def run_adhoc(sql: str, options: RunOptions) -> Result:
    """Answer a SELECT over files that it names itself, as DuckDB reads them."""
    statement = clean_statement(sql)
    began = time.perf_counter()
    model = load_model(options.sentiment or "lexicon")
    with open_database(model, memory_limit=options.memory_limit) as connection:
        try:
            names = [name for name, _ in describe(connection, statement, "the query")]
            table = connection.sql(statement).to_arrow_table()
        except ApplicationError as error:
            raise UsageError(str(error)) from None
        except duckdb.Error as error:
            raise QueryError(f"the query: {one_line(error)}") from None
    return Result(ADHOC, sql, table.rename_columns(names), time.perf_counter() - began)


def clean_statement(sql: str) -> str:
    return sql.strip().rstrip(";").rstrip()
