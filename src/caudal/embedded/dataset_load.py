"""Load sources into a dataset: clean their rows, write them as Parquet, commit one version.

Steps
1. Every source is known by the digest of its content. Sources that a version names are skipped.
2. Each source is cut into batches of about `BATCH_BYTES`, always at the same places. A batch is
   cleaned, then its files are created, then a small object says that it is done. Whoever repeats a
   killed load finds those objects and cleans only the other batches.
3. The version is committed with all files of the load. If another load brought a source meanwhile,
   its files are left out (and for a vacuum to delete).
4. The objects of step 2 are deleted.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from caudal.datasets import keys
from caudal.datasets.commits import (
    FilesVacuumedError,
    commit,
    create_dataset,
    find_head,
    newer,
    open_contents,
    settle,
)
from caudal.datasets.contents import Contents, first_contents
from caudal.datasets.documents import DatasetHead, DatasetVersion
from caudal.datasets.load_version import Brought
from caudal.datasets.reports import LoadReport
from caudal.datasets.shelf import require_same
from caudal.datasets.sources import Offered, Skipped, Sorted, load_id, sort_sources
from caudal.embedded.dataset_sources import Source
from caudal.embedded.dataset_tables import app_database, bind_tables, cleaning_digests
from caudal.embedded.dataset_writing import Tools, Writing
from caudal.errors import NotFoundError, StoreError
from caudal.model import Application
from caudal.results.rejects import Rejects
from caudal.run_options import Progress, RunOptions, Silent
from caudal.store.port import Store, entries

_ATTEMPTS = 3  # at most so many vacuums may delete files of one load


@contextmanager
def open_loader(
    app: Application,
    place: str,
    store: Store,
    options: RunOptions | None = None,
    progress: Progress | None = None,
) -> Iterator["DatasetLoader"]:
    """Open a loader of an application into the dataset in a store."""
    options = options or RunOptions()
    with (
        app_database(app, options) as connection,
        ThreadPoolExecutor(options.threads, thread_name_prefix="caudal") as pool,
    ):
        bound = bind_tables(app, connection, options)
        tools = Tools(store, connection, bound, options, progress or Silent(), pool)
        yield DatasetLoader(app, place, tools)


@dataclass
class DatasetLoader:
    """Loads sources of one application into one dataset, any number of times."""

    app: Application
    place: str
    tools: Tools
    clock: Callable[[], float] = time.time
    known: Contents | None = None  # the newest contents that were seen

    def load(self, sources: Sequence[Source], *, again: bool = False) -> LoadReport:
        """Load what is new of the sources, as one version."""
        for _ in range(_ATTEMPTS):
            try:
                return self._load(sources, again=again)
            except FilesVacuumedError:
                continue
        raise StoreError("vacuums delete files of this load again and again: try again later")

    def contents(self) -> Contents:
        """Return the newest contents, or those of a dataset that is not made yet."""
        if self.known is not None:
            return newer(self.tools.store, self.known)
        head = find_head(self.tools.store)
        if head is not None:
            digests = cleaning_digests(self.app, self.tools.options)
            require_same(self.place, head, self.app.name, digests)
            try:
                return open_contents(self.tools.store)
            except NotFoundError:  # its maker died half-way
                return create_dataset(self.tools.store, head)
        created = int(self.clock() * 1000)
        new = DatasetHead(str(uuid4()), self.app.name, created, self.tools.bound.tables)
        return first_contents(DatasetVersion(0, created, "create", head=new))

    def _load(self, sources: Sequence[Source], *, again: bool) -> LoadReport:
        began = time.perf_counter()
        contents = self.contents()
        sorted_ = sort_sources(contents, [one.offered for one in sources], again=again)
        new = _chosen(sources, sorted_)
        rejects = Rejects(self.tools.options.reject_sink)
        if not new:
            settle(self.tools.store, contents)
            return LoadReport(contents.number, None, 0, rejects, sorted_.skipped, 0.0)
        offered = [one.offered for one in new]
        load = load_id(contents, offered, self.tools.options.read_bytes, self.tools.bound.made_by)
        batches = Writing(self.tools, contents.head, load, new, rejects).write()
        if not contents.number:  # written by now, perhaps by somebody else
            contents = open_contents(self.tools.store, 0)
        brought = Brought(load, [(one.offered, one.part) for one in new], batches)
        committed = commit(
            self.tools.store, contents, lambda newest: brought.version(newest, self.clock())
        )
        self.known = committed
        for entry in list(entries(self.tools.store, keys.progress_folder(load))):
            self.tools.store.delete(entry.key, lasting=False)
        version = next((one for one in committed.history if one.load == load), None)
        rows = version.rows if version else 0
        late = () if version else _skipped_late(committed, offered)
        return LoadReport(
            committed.number,
            version.number if version else None,
            rows,
            rejects,
            (*sorted_.skipped, *late),
            time.perf_counter() - began,
        )


def _chosen(sources: Sequence[Source], found: Sorted) -> list[Source]:
    """Return the sources that are new, each once."""
    new = {one.identity for one in found.new}
    chosen = []
    for source in sources:
        if source.offered.identity in new:
            new.discard(source.offered.identity)
            chosen.append(source)
    return chosen


def _skipped_late(contents: Contents, offered: Sequence[Offered]) -> tuple[Skipped, ...]:
    return sort_sources(contents, offered, again=True).skipped
