"""Load an application from its folder.

    app.toml            title, tables in order (name, files, columns), parameters, options
    tables/NAME.sql     SELECT ... FROM raw: text columns to typed columns, plus `reject`
    queries/NAME.sql    one SELECT each; the leading comment is the title; $name is a parameter
    checks/NAME.sql     one SELECT each, of rows that must not exist
    cases/NAME/         input files and expected.json

A table without files in app.toml is derived: its SQL reads other tables (sql/derived.py).

This module finds every error in the form of a folder and reports it as one line that names the
file. DuckDB checks whether the SQL fits the tables (duck/bind.py).
"""

import errno
import re
from dataclasses import fields, replace
from importlib import resources
from pathlib import Path

import msgspec

from caudal.errors import ApplicationError, UsageError
from caudal.files.reading import checked
from caudal.model import Application, DerivedTable, ParameterValue, Query, Reading, Table
from caudal.sql.derived import expand, in_order
from caudal.toml import TomlError, decode_toml

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class _TableEntry(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    files: list[str] = []
    columns: list[str] = []
    format: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    encoding: str | None = None
    header: bool | None = None
    names: tuple[str, ...] | None = None
    skip: int | None = None
    comment: str | None = None
    decimal: str | dict[str, str] | None = None
    date_format: str | dict[str, str] | None = None
    sheet: str | None = None
    filename: bool = False
    union_by_name: bool = False


class _Options(msgspec.Struct, forbid_unknown_fields=True):
    sentiment: str = "lexicon"


class _AppFile(msgspec.Struct, forbid_unknown_fields=True):
    tables: list[_TableEntry]
    title: str = ""
    parameters: dict[str, ParameterValue] = {}
    options: _Options = msgspec.field(default_factory=_Options)


def shipped_applications() -> dict[str, Path]:
    """Return the folders of the applications in the package, by name."""
    root = Path(str(resources.files("caudal"))) / "apps"
    return {path.name: path for path in sorted(root.iterdir()) if (path / "app.toml").is_file()}


def find_application(name: str) -> Application:
    """Return the shipped application of this name, else the application in the folder `name`."""
    shipped = shipped_applications()
    if name in shipped:
        return load_application(shipped[name])
    folder = Path(name)
    if not name or not is_folder(name):
        raise UsageError(
            f"no application {name!r}: it is neither a shipped one ({', '.join(shipped)}) "
            "nor a folder; `caudal new` writes a folder to start from"
        )
    return load_application(folder)


def is_folder(text: str) -> bool:
    """Return whether a text is the path of a folder. It may be any text, such as a long SELECT."""
    try:
        return Path(text).is_dir()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise UsageError(f"cannot read {text}: {error.strerror}") from error


def load_application(folder: Path) -> Application:
    """Load the application in a folder; raise an ApplicationError that names the file to fix."""
    try:
        return _load(folder)
    except OSError as error:
        raise ApplicationError(f"cannot read {error.filename}: {error.strerror}") from error


def _load(folder: Path) -> Application:
    entries = _read_app_file(folder / "app.toml")
    tables = tuple(_load_table(folder, entry) for entry in entries.tables if _has_files(entry))
    derived = in_order(
        [_load_derived(folder, entry) for entry in entries.tables if not _has_files(entry)]
    )
    queries = _load_queries(folder / "queries")
    checks = tuple(_load_query(path) for path in sorted((folder / "checks").glob("*.sql")))
    _check_names(folder, (*tables, *derived), (*queries, *checks))
    _require_files(folder, tables)
    return Application(
        name=folder.resolve().name,
        title=entries.title,
        folder=folder,
        tables=tables,
        queries=tuple(_with_derived(query, derived) for query in queries),
        parameters=entries.parameters,
        sentiment=entries.options.sentiment,
        derived=derived,
        checks=tuple(_with_derived(query, derived) for query in checks),
    )


def query_title(sql: str, default: str) -> str:
    """Return the text of the comment lines at the start of a query."""
    lines = []
    for line in sql.splitlines():
        if not line.strip().startswith("--"):
            break
        lines.append(line.strip().removeprefix("--").strip())
    return " ".join(lines).strip() or default


def _read_app_file(path: Path) -> _AppFile:
    if not path.is_file():
        raise ApplicationError(
            f"{path} is missing: an application folder holds app.toml, tables/ and queries/; "
            "`caudal new` writes one to start from"
        )
    try:
        return decode_toml(path.read_bytes(), _AppFile)
    except TomlError as error:
        raise ApplicationError(f"{path}: {error}") from error


def _load_table(folder: Path, entry: _TableEntry) -> Table:
    path = folder / "tables" / f"{entry.name}.sql"
    if not entry.files:
        raise ApplicationError(f"{folder / 'app.toml'}: table {entry.name!r} names no files")
    duplicates = _duplicates(entry.columns)
    if duplicates:
        raise ApplicationError(
            f"{folder / 'app.toml'}: table {entry.name!r} lists column {duplicates[0]!r} twice"
        )
    return Table(
        name=entry.name,
        files=tuple(entry.files),
        columns=tuple(entry.columns),
        sql=_read_sql(path, f"app.toml names a table {entry.name!r}"),
        origin=str(path),
        reading=_reading(folder, entry),
    )


def _has_files(entry: _TableEntry) -> bool:
    return bool(entry.files or entry.columns)


def _load_derived(folder: Path, entry: _TableEntry) -> DerivedTable:
    path = folder / "tables" / f"{entry.name}.sql"
    return DerivedTable(
        entry.name, _read_sql(path, f"app.toml names a table {entry.name!r}"), str(path)
    )


def _with_derived(query: Query, derived: tuple[DerivedTable, ...]) -> Query:
    return replace(query, sql=expand(query.sql, derived, query.origin)) if derived else query


def _require_files(folder: Path, tables: tuple[Table, ...]) -> None:
    if not tables:
        raise ApplicationError(
            f"{folder / 'app.toml'}: add at least one [[tables]] entry with files and columns"
        )


def _reading(folder: Path, entry: _TableEntry) -> Reading | None:
    """Return what app.toml says about the files of a table; None if it says nothing."""
    given = Reading(**{one.name: getattr(entry, one.name) for one in fields(Reading)})
    try:
        return None if given == Reading() else checked(given)
    except UsageError as error:
        raise ApplicationError(f"{folder / 'app.toml'}: table {entry.name!r}: {error}") from error


def _load_queries(folder: Path) -> tuple[Query, ...]:
    paths = sorted(folder.glob("*.sql"))
    if not paths:
        raise ApplicationError(f"{folder} holds no .sql file: write one SELECT per file there")
    return tuple(_load_query(path) for path in paths)


def _load_query(path: Path) -> Query:
    sql = _read_sql(path, "")
    return Query(path.stem, query_title(sql, path.stem), sql, str(path))


def _read_sql(path: Path, why: str) -> str:
    if not path.is_file():
        raise ApplicationError(f"{path} is missing: {why}, so write its SELECT ... FROM raw there")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ApplicationError(f"{path} is not UTF-8 text: save it as UTF-8") from error
    text = text.strip().rstrip(";").rstrip()
    if not text:
        raise ApplicationError(f"{path} is empty: write one SELECT there")
    return text


def _check_names(
    folder: Path, tables: tuple[Table | DerivedTable, ...], queries: tuple[Query, ...]
) -> None:
    """Raise ApplicationError for a bad or repeated name. `queries` are queries and checks."""
    names = [table.name for table in tables]
    twice = _duplicates([query.name for query in queries])
    if twice:
        raise ApplicationError(
            f"{folder / 'checks' / twice[0]}.sql has the name of a query: rename it"
        )
    duplicates = _duplicates([name.lower() for name in names])
    if duplicates:
        raise ApplicationError(f"{folder / 'app.toml'}: two tables are called {duplicates[0]!r}")
    for origin, name in [(str(folder / "app.toml"), name) for name in names] + [
        (query.origin, query.name) for query in queries
    ]:
        if not _IDENTIFIER.match(name) or name.lower() == "raw":
            raise ApplicationError(
                f"{origin}: {name!r} cannot be a name here: use letters, digits and _ (not `raw`)"
            )
    for path in sorted((folder / "tables").glob("*.sql")):
        if path.stem not in names:
            raise ApplicationError(
                f"{path} belongs to no table: add [[tables]] name = {path.stem!r} to app.toml, "
                "or remove the file"
            )


def _duplicates(names: list[str]) -> list[str]:
    return [name for place, name in enumerate(names) if name in names[:place]]
