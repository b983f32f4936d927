"""Make a case of an application out of live data: `caudal case APP NAME --from DATA`.

1. Only tables that the chosen queries read get a file, with the columns that their SQL reads. The
   values are the texts of the original, so a row that was rejected is rejected again. Damaged
   records are left out.
2. Of each table, the first rows are taken. A condition chooses among its text columns; it may read
   the chosen rows of earlier tables by their names, so that joins find partners.
3. The expected answers are those of the embedded engine. The case is kept only if the split engine
   agrees: a query without a total order would fail some day.
"""

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from caudal.application.case_rows import as_written, write_rows
from caudal.application.cases import run_case
from caudal.duck.bind import bind, choose_queries
from caudal.duck.database import Connection, DuckDBError, one_line, open_database
from caudal.embedded.engine import run
from caudal.errors import DataError, OutputError, UsageError
from caudal.files.cleaning import Wanted
from caudal.files.pieces import pieces
from caudal.files.sources import Sources
from caudal.kernels.sentiment import load_model
from caudal.model import Application, ParameterValue, Table
from caudal.results.values import json_bytes
from caudal.run_options import IN_PROCESS, RunOptions

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\Z")
_BATCH_BYTES = 1 << 20


@dataclass(frozen=True)
class CaseRequest:
    """What a case shall hold."""

    name: str
    rows: int = 20  # of each table, at most
    conditions: Mapping[str, str] = field(default_factory=dict)  # by table, over text columns
    queries: Sequence[str] | None = None  # None: all
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
    about: str = ""


def record_case(app: Application, sources: Sources, request: CaseRequest) -> Path:
    """Write a case with rows of the files and the answers over them; return its folder."""
    target = app.folder / "cases" / request.name
    if not _NAME.match(request.name):
        raise UsageError(f"{request.name!r} cannot be the name of a case: use letters and digits")
    if target.exists():
        raise UsageError(f"{target} exists already: choose another name, or remove it first")
    chosen = _chosen_rows(app, sources, request)
    try:
        with tempfile.TemporaryDirectory(dir=app.folder, prefix=".case-") as scratch:
            draft = Path(scratch) / request.name
            for table, rows in chosen.items():
                write_rows(draft / _file_name(table), rows, table.reading)
            _write_expected(app, draft, request, chosen)
            _require_repeatable(app, draft)
            target.parent.mkdir(exist_ok=True)
            draft.rename(target)
    except OSError as error:
        raise OutputError(f"cannot write {target}: {error.strerror}") from error
    return target


def _chosen_rows(app: Application, sources: Sources, request: CaseRequest) -> dict[Table, pa.Table]:
    """Return the rows of each table that the chosen queries read, as text."""
    chosen = choose_queries(app, request.queries, request.parameters)
    with open_database(load_model(app.sentiment)) as connection:
        read = [load.table for load in bind(app, chosen, request.parameters, connection).loads]
        _require_tables(request.conditions, read)
        rows = {}
        for table in read:
            rows[table] = _first_rows(connection, table, sources, request)
            connection.register(table.name, rows[table])
    return rows


def _require_tables(conditions: Mapping[str, str], read: Sequence[Table]) -> None:
    names = [table.name for table in read]
    for name in conditions:
        if name not in names:
            raise UsageError(
                f"--where {name}: the queries read no such table with files; "
                f"they read: {', '.join(names)}"
            )


def _first_rows(
    connection: Connection, table: Table, sources: Sources, request: CaseRequest
) -> pa.Table:
    condition = request.conditions.get(table.name, "TRUE")
    found = pa.table({name: pa.nulls(0, pa.string()) for name in table.columns})
    for file in map(as_written, sources.files(table)):
        for piece in pieces(file, Wanted(table.name, table.columns), batch_bytes=_BATCH_BYTES):
            rows = piece.read().table.select(list(table.columns))
            some = _where(connection, rows, condition, table.name)
            found = pa.concat_tables([found, some.cast(found.schema)]).slice(0, request.rows)
            if found.num_rows == request.rows:
                return found
    return found


def _where(connection: Connection, rows: pa.Table, condition: str, table: str) -> pa.Table:
    if condition == "TRUE":
        return rows
    connection.register("live_rows", rows)
    try:
        return connection.sql(f"SELECT * FROM live_rows WHERE ({condition})").to_arrow_table()
    except DuckDBError as error:
        raise UsageError(f"--where {table}: {one_line(error)}") from None
    finally:
        connection.unregister("live_rows")


def _file_name(table: Table) -> str:
    """Return a name that the first pattern of the table finds, inside of the case."""
    if table.reading is not None and (table.reading.header is False or table.reading.names):
        raise DataError(
            f"table {table.name}: its files have no header of their own, so a case cannot hold "
            "some of their columns"
        )
    name = re.sub(r"[*?]+", "1", table.files[0])
    if Path(name).is_absolute() or ".." in Path(name).parts or "[" in name:
        raise DataError(
            f"table {table.name}: {table.files[0]!r} names no file inside of a data folder, so a "
            "case cannot hold it"
        )
    return name


def _write_expected(
    app: Application, draft: Path, request: CaseRequest, chosen: Mapping[Table, pa.Table]
) -> None:
    answers = run(app, Sources(draft), request.queries, request.parameters)
    for error in answers.failures.values():
        raise error
    counts = ", ".join(f"{rows.num_rows} rows of {table.name}" for table, rows in chosen.items())
    expected = {
        "about": request.about or f"Live data: {counts}.",
        "answers": {name: result.rows() for name, result in answers.items()},
        "rejects": answers.rejects.counts(),
        "parameters": dict(request.parameters),
    }
    (draft / "expected.json").write_bytes(json_bytes(expected))


def _require_repeatable(app: Application, draft: Path) -> None:
    for engine in IN_PROCESS:
        outcome = run_case(app, draft, RunOptions(), engine)
        if outcome.problems:
            raise UsageError(
                f"the {engine} engine gives another answer ({outcome.problems[0]}): give the query "
                "an ORDER BY that leaves no ties, then make the case"
            )
