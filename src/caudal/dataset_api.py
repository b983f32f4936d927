"""Datasets from Python: load, ask, append, watch.

Nothing heavy is loaded before the first call that needs it.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caudal.errors import UsageError
from caudal.model import ParameterValue
from caudal.results.answers import Answers, Result

if TYPE_CHECKING:
    import polars
    import pyarrow as pa

    from caudal.datasets.contents import VersionSummary
    from caudal.datasets.reports import LoadReport
    from caudal.datasets.shelf import Shelf
    from caudal.duck.database import Connection, Relation
    from caudal.model import Application
    from caudal.run_options import RunOptions
    from caudal.sql.literals import SqlValue


def load(
    app: str | os.PathLike[str],
    data: str | os.PathLike[str] | None = None,
    *,
    to: str | os.PathLike[str] | None = None,
    files: Mapping[str, str | Sequence[str]] | None = None,
    again: bool = False,
    strict: bool = False,
    sentiment: str | None = None,
    memory_limit: str | int | None = None,
    gateway: str | Sequence[str] | None = None,
    dataset: str | None = None,
) -> "LoadReport":
    """Load files into a dataset, as one version; return what was loaded and what was skipped.

    >>> import caudal
    >>> report = caudal.load("movies", example_data, to=new_folder)
    >>> report.version, report.rows > 0
    (1, True)
    >>> caudal.load("movies", example_data, to=new_folder).version is None  # nothing is new
    True

    Without `data`, only the tables of `files` are loaded. With `gateway` and `dataset` in place of
    `to`, the rows go to a dataset of a cluster; `caudal.Client.load` has more options for that.
    """
    if dataset is not None:
        from caudal.client.client import Client

        how: dict[str, Any] = {"strict": strict, "sentiment": sentiment}
        return Client(gateway).load(app, data, dataset=dataset, files=files, again=again, **how)
    if to is None or gateway is not None:
        raise UsageError("say where to load: `to`, or `gateway` and `dataset`")
    from caudal.application import find_application
    from caudal.datasets.shelf import place_to_load
    from caudal.embedded.dataset_load import open_loader
    from caudal.embedded.dataset_sources import file_sources
    from caudal.files.sources import Sources

    application, place = find_application(os.fspath(app)), os.fspath(to)
    given = {
        table: [paths] if isinstance(paths, str) else list(paths)
        for table, paths in (files or {}).items()
    }
    tables = [one for one in application.tables if not given or data or one.name in given]
    options = _options(sentiment, memory_limit, strict=strict)
    with (
        place_to_load(place) as store,
        open_loader(application, place, store, options) as loader,
    ):
        sources = file_sources(Sources(Path(data or "."), given), tables)
        return loader.load(sources, again=again)


class Dataset:
    """A dataset in a folder or on S3; every call asks its newest version, or the one of `as_of`.

    >>> import caudal
    >>> _ = caudal.load("movies", example_data, to=new_folder)
    >>> shelf = caudal.Dataset(new_folder)
    >>> shelf.sql("SELECT count(*) AS films FROM movies", "movies").rows()
    [{'films': 3}]
    >>> [one.number for one in shelf.versions()]
    [0, 1]
    """

    def __init__(self, place: str | os.PathLike[str], as_of: int | None = None) -> None:
        self.place = os.fspath(place)
        self.as_of = as_of

    def __repr__(self) -> str:
        return f"Dataset({self.place!r}{'' if self.as_of is None else f', as_of={self.as_of}'})"

    def run(
        self,
        app: str | os.PathLike[str],
        queries: str | Sequence[str] | None = None,
        *,
        parameters: Mapping[str, ParameterValue] | None = None,
        sentiment: str | None = None,
        memory_limit: str | int | None = None,
        spark: Any = None,
    ) -> Answers:
        """Answer an application's queries; None means all. With `spark`, a session or
        `caudal.SparkOptions`, on Spark."""
        options = _options(sentiment, memory_limit, spark=spark)
        return _ask(os.fspath(app), self._open(), _names(queries), parameters, options, spark)

    def sql(
        self,
        query: str,
        app: str | os.PathLike[str],
        *,
        parameters: "Mapping[str, SqlValue] | None" = None,
        sentiment: str | None = None,
        memory_limit: str | int | None = None,
        spark: Any = None,
    ) -> Result:
        """Answer any SELECT over the tables of the dataset, `rejects` included. With `spark`, a
        session or `caudal.SparkOptions`, on Spark."""
        from caudal.application import find_application
        from caudal.model import ADHOC
        from caudal.sql.adhoc import asker_mistakes, bind_values, with_adhoc_query

        application = find_application(os.fspath(app))
        bound = bind_values(query, parameters or {}, application.parameters)
        application = with_adhoc_query(application, bound)
        with asker_mistakes():
            options = _options(sentiment, memory_limit, spark=spark)
            return _asked(application, self._open(), None, None, options, spark)[ADHOC]

    def versions(self) -> "tuple[VersionSummary, ...]":
        """Return all versions: number, time in milliseconds, kind, rows, files, bytes, rejected."""
        return self._open().contents.history

    def append(
        self,
        app: str | os.PathLike[str],
        table: str,
        rows: Any,
        *,
        key: str | None = None,
        strict: bool = False,
    ) -> "LoadReport":
        """Append rows to a table, as one version. They are cleaned like rows of a file.

        `rows` are dictionaries, an Arrow table, or a Polars or pandas frame, with the columns that
        the files have. With a `key`, rows of the same key are loaded once: a program may repeat an
        append whose outcome it did not see.
        """
        from caudal.application import find_application
        from caudal.datasets.shelf import place_to_load
        from caudal.embedded.dataset_load import open_loader
        from caudal.embedded.dataset_rows import rows_source

        application = find_application(os.fspath(app))
        source = rows_source(application, table, rows, key)
        options = _options(None, None, strict=strict)
        with (
            place_to_load(self.place) as store,
            open_loader(application, self.place, store, options) as loader,
        ):
            return loader.load([source])

    def watch(
        self,
        app: str | os.PathLike[str],
        queries: str | Sequence[str] | None = None,
        *,
        parameters: Mapping[str, ParameterValue] | None = None,
        poll_seconds: float = 0.5,
    ) -> Iterator[tuple[int, Answers]]:
        """Yield the newest version and its answers, then again for every later one; never ends."""
        from caudal.embedded.dataset_watch import versions_of

        names = _names(queries)
        for shelf in versions_of(self._open(), poll_seconds):
            yield shelf.contents.number, _ask(os.fspath(app), shelf, names, parameters)

    def table(self, name: str) -> "DatasetRows":
        """Return a table at the version that is the newest now, for other programs."""
        shelf = self._open()
        if name not in shelf.contents.tables:
            known = ", ".join(shelf.contents.tables)
            raise UsageError(f"{self.place} has no table {name!r}; its tables are: {known}")
        return DatasetRows(shelf, name)

    def _open(self) -> "Shelf":
        from caudal.datasets.shelf import open_shelf

        return open_shelf(self.place, self.as_of)


@dataclass(frozen=True)
class DatasetRows:
    """The rows of one table at one version."""

    shelf: "Shelf"
    name: str

    def to_arrow(self) -> "pa.Table":
        """Return all rows, read into memory."""
        from caudal.embedded.dataset_rows import arrow_rows

        return arrow_rows(self.shelf, self.name)

    def to_polars(self) -> "polars.LazyFrame":
        """Return a lazy frame that reads the files when it is collected; a folder only."""
        from caudal.embedded.dataset_rows import lazy_frame

        return lazy_frame(self.shelf, self.name)

    def to_duckdb(self, connection: "Connection | None" = None) -> "Relation":
        """Return a relation that reads the files when it is executed; a folder only."""
        from caudal.embedded.dataset_rows import relation

        found: Relation = relation(self.shelf, self.name, connection)
        return found


def _ask(
    app: str,
    shelf: "Shelf",
    queries: Sequence[str] | None,
    parameters: Mapping[str, ParameterValue] | None,
    options: "RunOptions | None" = None,
    spark: Any = None,
) -> Answers:
    from caudal.application import find_application

    return _asked(find_application(app), shelf, queries, parameters, options, spark)


def _asked(
    app: "Application",
    shelf: "Shelf",
    queries: Sequence[str] | None,
    parameters: Mapping[str, ParameterValue] | None,
    options: "RunOptions | None",
    spark: Any,
) -> Answers:
    from caudal.local.engines import ask_with
    from caudal.run_options import Engine

    engine = Engine.EMBEDDED if spark is None else Engine.SPARK
    return ask_with(engine, app, shelf, queries, parameters, options)


def _names(queries: str | Sequence[str] | None) -> Sequence[str] | None:
    return [queries] if isinstance(queries, str) else queries


def _options(
    sentiment: str | None,
    memory_limit: str | int | None,
    *,
    strict: bool = False,
    spark: Any = None,
) -> "RunOptions":
    from caudal.run_options import RunOptions, SparkOptions
    from caudal.sizes import parse_bytes

    limit = parse_bytes(memory_limit) if isinstance(memory_limit, str) else memory_limit
    how = SparkOptions.of(spark)
    return RunOptions(sentiment=sentiment, memory_limit=limit, strict=strict, spark=how)
