"""A database that keeps the tables it has read, for many queries one after the other.

1. A table is read when a query first names it, with all its rows and columns. A query that needs no
   more than its first rows (LIMIT) reads only those, unless the table is kept already.
2. It is kept for the queries that follow. It is read again if its files have changed.
3. A query sees its tables as views of its own names, because two queries may give one name to two
   files. The kept tables have names of their own.

The rows of a query are those of the embedded engine, which reads only what the query can see.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from caudal.duck.arrow_casts import without_loss
from caudal.duck.bind import BoundQuery, TableLoad, bind_whole_tables, table_schemas
from caudal.duck.database import Connection, open_database
from caudal.duck.one_pass import Passes
from caudal.embedded.loading import Loader
from caudal.embedded.parts import StreamedResult, parts_of
from caudal.embedded.passing import passing
from caudal.files.inputs import InputFile
from caudal.files.places import Place
from caudal.files.sources import Sources
from caudal.kernels.sentiment import load_model
from caudal.model import Application, Table
from caudal.results.rejects import Rejects
from caudal.run_options import Progress, RunOptions
from caudal.sql.quoting import quote

_FileState = tuple[str, tuple[int, ...]]  # with numbers that change when the file does


@dataclass
class TableSession:
    """A database with the tables that its queries have read so far."""

    connection: Connection
    pool: ThreadPoolExecutor
    options: RunOptions
    _kept: dict[Table, "_KeptTable"] = field(default_factory=dict)
    _count: int = 0

    @contextlib.contextmanager
    def stream(
        self, app: Application, sources: Sources, progress: Progress
    ) -> Iterator[StreamedResult]:
        """Answer the only query of `app`; its rows must be read inside of the block."""
        (query,) = app.queries
        binding = bind_whole_tables(app, query, self.connection)
        rejects = Rejects(self.options.reject_sink)
        loader = Loader(self.connection, self.pool, self.options, rejects, progress)
        (bound,) = binding.queries
        if self._needs_first_rows(bound, binding.loads):
            (load,) = binding.loads
            with passing(bound, load, sources.files(load.table), loader) as parts:
                yield StreamedResult(query.name, query.title, parts, rejects)
            return
        try:
            for load in binding.loads:
                self._provide(load, sources.files(load.table), loader)
            cursor = self.connection.cursor()
            with contextlib.closing(parts_of(bound, cursor, self.pool)) as parts:
                yield StreamedResult(query.name, query.title, parts, rejects)
        finally:
            for load in binding.loads:
                self.connection.execute(f"DROP VIEW IF EXISTS {quote(load.table.name)}")

    def schemas(self, app: Application) -> Mapping[str, Mapping[str, str]]:
        """Return the columns of each table, with their types. No file is read."""
        return table_schemas(app, self.connection)

    def names(self, sql: str) -> list[str]:
        """Return the first column of a query about DuckDB itself, such as its functions."""
        return [str(row[0]) for row in self.connection.cursor().execute(sql).fetchall()]

    def _needs_first_rows(self, bound: BoundQuery, loads: Sequence[TableLoad]) -> bool:
        """Return whether a query needs the first rows only, of a table that is not kept."""
        whole = self.options.strict or self.options.reject_sink is not None
        if bound.passes is not Passes.FIRST_ROWS or len(loads) != 1 or whole:
            return False
        return replace(loads[0].table, name="") not in self._kept

    def _provide(self, load: TableLoad, files: list[InputFile], loader: Loader) -> None:
        """Create the view of a table; read the table first if that is needed."""
        table, states = replace(load.table, name=""), _states(files)
        kept = self._kept.get(table)
        if kept is None or kept.states != states:
            self._forget(table)
            kept = _KeptTable(self._read(load, files, loader), states)
            self._kept[table] = kept
        view = f"CREATE OR REPLACE VIEW {quote(load.table.name)} AS FROM {kept.stored}"
        self.connection.execute(view)

    def _read(self, load: TableLoad, files: list[InputFile], loader: Loader) -> str:
        """Read a table under a name of its own; return that name."""
        self._count += 1
        name = quote(f"kept {self._count}")
        view = quote(load.table.name)
        self.connection.execute(f"DROP VIEW IF EXISTS {view}")
        self.connection.execute(f"DROP TABLE IF EXISTS {load.stored}")  # of a load that failed
        with without_loss(self.connection):
            loader.load(load, files)
        self.connection.execute(f"DROP VIEW {view}")
        self.connection.execute(f"ALTER TABLE {load.stored} RENAME TO {name}")
        return f"stored.{name}"

    def _forget(self, table: Table) -> None:
        kept = self._kept.pop(table, None)
        if kept is not None:
            self.connection.execute(f"DROP TABLE {kept.stored}")


@dataclass(frozen=True)
class _KeptTable:
    stored: str  # quoted for SQL
    states: list[_FileState]


@contextlib.contextmanager
def open_session(sentiment: str, options: RunOptions) -> Iterator[TableSession]:
    """Open an empty session. `sentiment` names the model of the function `sentiment`."""
    model = load_model(sentiment)
    with (
        open_database(model, memory_limit=options.memory_limit) as connection,
        ThreadPoolExecutor(options.threads, thread_name_prefix="caudal") as pool,
    ):
        connection.execute("CREATE SCHEMA stored")
        yield TableSession(connection, pool, options)


def _states(files: list[InputFile]) -> list[_FileState]:
    return [_state(file.place) for file in files]


def _state(place: Place) -> _FileState:
    try:
        return place.identity, place.state()
    except OSError:  # the reader tells what is wrong
        return place.identity, ()
