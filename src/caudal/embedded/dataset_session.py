"""Many queries, one after the other, over one version of a dataset."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from caudal.datasets.shelf import Shelf, require_same
from caudal.duck.bind import parameter_values
from caudal.embedded.dataset_ask import bind_over
from caudal.embedded.dataset_computed import compute_columns
from caudal.embedded.dataset_files import local_files
from caudal.embedded.dataset_tables import app_database, cleaning_digests, sentiment_model
from caudal.embedded.dataset_views import create_views
from caudal.embedded.parts import StreamedResult, parts_of
from caudal.embedded.session import TableSession
from caudal.files.sources import Sources
from caudal.model import Application
from caudal.results.rejects import Rejects
from caudal.run_options import Progress, RunOptions


@dataclass
class DatasetSession(TableSession):
    """A database whose tables are views of a dataset's files; no other files are read."""

    shelf: Shelf = field(kw_only=True)
    files: Mapping[str, Sequence[Path]] = field(kw_only=True)

    @contextlib.contextmanager
    def stream(
        self, app: Application, sources: Sources, progress: Progress
    ) -> Iterator[StreamedResult]:
        """Answer the only query of `app`; its rows must be read inside of the block."""
        (query,) = app.queries
        tables = self.shelf.contents.head.tables
        values, model = parameter_values(app, {}), sentiment_model(app, self.options)
        (bound,) = bind_over(self.connection, tables, app.queries, values, model)
        made = compute_columns(
            self.connection, self.pool, self.shelf, self.files, [bound], self.options.threads
        )
        cursor = made.cursor(self.connection, bound)
        with contextlib.closing(parts_of(bound, cursor, self.pool)) as parts:
            yield StreamedResult(query.name, query.title, parts, Rejects())

    def schemas(self, app: Application) -> Mapping[str, Mapping[str, str]]:
        """Return the columns of each table, with their types."""
        return self.shelf.contents.columns


@contextlib.contextmanager
def open_dataset_session(
    app: Application, shelf: Shelf, options: RunOptions
) -> Iterator[DatasetSession]:
    """Open a session over a version of a dataset of this application."""
    head = shelf.contents.head
    require_same(shelf.place, head, app.name, cleaning_digests(app, options))
    with (
        app_database(app, options) as connection,
        local_files(shelf, shelf.contents.tables) as files,
        ThreadPoolExecutor(options.threads, thread_name_prefix="caudal") as pool,
    ):
        create_views(connection, shelf, files)
        yield DatasetSession(connection, pool, options, shelf=shelf, files=files)
