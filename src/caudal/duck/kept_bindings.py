"""Bindings of earlier runs, kept in files, so that an unchanged application is not bound again.

Rules
1. The name of a file is a digest of everything that the binding depends on: the application, the
   chosen queries, the given parameters, the code of Caudal, and the versions of DuckDB, pyarrow and
   sqlglot.
2. A binding is kept only if it is positively known that it depends on nothing else: its SQL names
   only the application's tables, calls only table functions that compute, and does not ask the
   clock.
3. A file is JSON, decoded into the types of a binding. Its first line is a digest of the rest. A
   file that is damaged, of another form or of another user is ignored and written again.
4. At most `MOST_FILES` files of `MOST_BYTES` are kept; those not used for longest are deleted.
5. A cache that cannot be read or written never fails a run.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import duckdb
import msgspec

import caudal
from caudal.decoding import decode_json
from caudal.duck.bind import BoundQuery, RunBinding, bind
from caudal.duck.reach import require_own_relations
from caudal.errors import CaudalError
from caudal.formats.digest import digest
from caudal.model import Application, ParameterValue, Query, Table
from caudal.sql.planner import TextChecks
from caudal.version import __version__

MOST_FILES = 200
MOST_BYTES = 1 << 20
_ENDING = ".binding"
_CODE = ("sql", "duck", "files", "datasets")  # the rooms that make a binding

Binding = TypeVar("Binding")


def bind_or_recall(
    folder: Path | None,
    app: Application,
    queries: Sequence[Query],
    parameters: Mapping[str, ParameterValue],
    connection: duckdb.DuckDBPyConnection,
) -> RunBinding:
    """Return the binding that the folder keeps; else bind, and keep the binding if rule 2 allows.

    Without a folder nothing is kept. Without tables there is little to bind.
    """
    tables = [table.name for table in app.tables]

    def make() -> RunBinding:
        return bind(app, queries, parameters, connection)

    def is_kept(made: RunBinding) -> bool:
        return cleans_on_its_own(connection, app.tables) and (
            depends_on_tables(connection, made.queries, tables)
        )

    if folder is None or not tables:
        return make()
    asked = (app.tables, app.queries, app.parameters, queries, parameters)
    return make_or_recall(folder, RunBinding, asked, make, is_kept)


def make_or_recall(
    folder: Path,
    kind: type[Binding],
    asked: object,
    make: Callable[[], Binding],
    is_kept: Callable[[Binding], bool],
) -> Binding:
    """Return the binding that the folder keeps; else make it, and keep it if `is_kept` allows it.

    `asked` is everything that the binding depends on, apart from code (rule 1).
    """
    path = folder / f"{_key((kind.__name__, asked))}{_ENDING}"
    recalled = _read(path, kind)
    if recalled is not None:
        return recalled
    made = make()
    if is_kept(made):
        _write(path, made)
    return made


def depends_on_tables(
    connection: duckdb.DuckDBPyConnection, queries: Sequence[BoundQuery], tables: Sequence[str]
) -> bool:
    """Return whether it is positively known that queries depend on these tables only (rule 2)."""
    own = _is_own(connection, {bound.sql: list(tables) for bound in queries})
    return own and not any(_asks_the_clock(bound.query.sql) for bound in queries)


def cleans_on_its_own(connection: duckdb.DuckDBPyConnection, tables: Sequence[Table]) -> bool:
    """Return whether it is positively known that cleaning depends on the tables only (rule 2)."""
    names = [table.name for table in tables]
    return _is_own(connection, {table.sql: ["raw", *names] for table in tables})


def _key(asked: object) -> str:
    made_by = (__version__, duckdb.__version__, version("pyarrow"), version("sqlglot"), _code())
    return hashlib.sha256(msgspec.json.encode((asked, made_by))).hexdigest()


@cache
def _code() -> list[tuple[str, int, int]]:
    """Return name, size and time of every file of code: they change where Caudal is developed."""
    root = Path(caudal.__file__).parent
    files = sorted(path for room in _CODE for path in (root / room).rglob("*.py"))
    return [
        (str(path.relative_to(root)), found.st_size, found.st_mtime_ns)
        for path in files
        for found in (path.stat(),)
    ]


def _is_own(connection: duckdb.DuckDBPyConnection, relations: Mapping[str, list[str]]) -> bool:
    """Return whether each SQL text reads only the relations that are its own."""
    try:
        for sql, names in relations.items():
            require_own_relations(connection, sql, names)
    except (CaudalError, duckdb.Error):
        return False
    return True


def _asks_the_clock(sql: str) -> bool:
    from caudal.sql.planner.current_time import freeze_current_time

    return freeze_current_time(sql, TextChecks(datetime(2000, 1, 1, tzinfo=UTC))) != sql


def _read(path: Path, kind: type[Binding]) -> Binding | None:
    try:
        if path.is_symlink():
            return None
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None
            checksum, _, body = file.read(MOST_BYTES + 1).partition(b"\n")
            if digest(body).encode() != checksum:
                return None
            recalled = decode_json(body, kind)
            os.utime(file.fileno())
    except (OSError, msgspec.MsgspecError):
        return None
    return recalled


def _write(path: Path, made: object) -> None:
    body = msgspec.json.encode(made)
    data = digest(body).encode() + b"\n" + body
    if len(data) > MOST_BYTES:
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            whole = Path(folder, path.name)
            whole.write_bytes(data)
            whole.replace(path)
        _forget_oldest(path.parent)


def _forget_oldest(folder: Path) -> None:
    found = sorted(folder.glob(f"*{_ENDING}"), key=lambda path: path.stat().st_mtime_ns)
    for path in found[: max(0, len(found) - MOST_FILES)]:
        path.unlink()
