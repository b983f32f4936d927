"""A run in one process whose progress is in a store, so that it can be killed and resumed.

Rules
1. The run is a job (jobs/service.py). Its id is derived from the request: application, queries,
   parameters, options, names of files. So the same command finds its unfinished run.
2. A resumed run cuts all files again and compares every batch with its stored digest. A changed
   file is an error. Stored batches are not stored again, and finished tasks do not run again.
3. The broker is in memory. After a kill, its messages are computed from the store
   (jobs/reconcile.py) and published once, at the beginning. After that every task publishes the
   tasks that follow from it, as in a cluster.
4. The run stays in the store until its answers are delivered. Then it is removed, job.json first. A
   failed run is removed at once, because it would fail again. If a query fails, the other queries
   keep their answers (failures.py).
"""

import contextlib
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from caudal.errors import (
    ApplicationError,
    DataError,
    FormatError,
    QueryError,
    StoreError,
    UsageError,
)
from caudal.files.batches import Packing
from caudal.files.inputs import InputFile
from caudal.files.sources import Sources
from caudal.formats.digest import digest
from caudal.formats.keys import job_key
from caudal.jobs.interfaces import GoneError
from caudal.jobs.runs import JobRuns, read_outcome
from caudal.local.borrowed import BorrowingStore, ChangedFileError
from caudal.local.job import LocalJob, LocalRequest, settle
from caudal.local.split import run_once
from caudal.model import Application, ParameterValue, Table
from caudal.results.answers import Answers
from caudal.run_options import Progress, RunOptions, Silent
from caudal.store.port import Store, entries
from caudal.store.probe import require_conditional_create
from caudal.version import __version__

_FAILED = (QueryError, ApplicationError, DataError)  # rule 4


@contextlib.contextmanager
def local_run(store: Store, place: str, *, resume: bool) -> Iterator["LocalRun"]:
    """Provide a run in a store. Remove its objects if the block ends without an error.

    `place` is the name of the store for messages. The store must let only the first of two creates
    succeed; this is tested.
    """
    require_conditional_create(store)
    run = LocalRun(store, place, resume=resume)
    yield run
    run.remove()


class LocalRun:
    """One run. `run` has the signature of an engine and gives the same answers."""

    def __init__(self, store: Store, place: str, *, resume: bool) -> None:
        self._inner = store
        self._place = place
        self._resume = resume
        self._job_id = ""
        self._store = BorrowingStore(store, kept=0)

    def run(
        self,
        app: Application,
        sources: Sources,
        queries: Sequence[str] | None = None,
        parameters: Mapping[str, ParameterValue] | None = None,
        *,
        options: RunOptions | None = None,
        progress: Progress | None = None,
    ) -> Answers:
        """Answer the chosen queries, from the beginning or from the progress of a killed run."""
        began = time.perf_counter()
        request = LocalRequest(
            *(app, sources, tuple(queries or ()), parameters or {}),
            *(options or RunOptions(), progress or Silent()),
        )
        self._job_id = _job_id(request)
        self._store = BorrowingStore(self._inner, kept=request.options.threads + 3)
        try:
            answers = settle(self._answered(request), request, run_once)
        except _FAILED as error:
            if not isinstance(error, ChangedFileError):
                with contextlib.suppress(StoreError):
                    self.remove()
            raise
        except FormatError as error:
            raise FormatError(f"{error}; begin again with another --store") from error
        except GoneError:
            raise UsageError(
                f"another process finished the same run in {self._place} meanwhile: run it again"
            ) from None
        return replace(answers, seconds=time.perf_counter() - began)

    def _answered(self, request: LocalRequest) -> Answers:
        self._prepare()
        with tempfile.TemporaryDirectory(prefix="caudal-") as folder:
            return LocalJob(
                self._store, self._job_id, request, Path(folder), Packing.UNLESS_PLAIN
            ).answers()

    def remove(self) -> None:
        """Remove all objects of the run, job.json first: the rest is garbage after a kill."""
        self._store.delete(job_key(self._job_id))
        self._sweep()

    def _prepare(self) -> None:
        """Refuse to resume without `--resume`; remove the objects of a run that has ended."""
        job_run = JobRuns(self._store).open(self._job_id)
        if job_run is None:
            self._sweep()
            return
        outcome = read_outcome(self._store, job_run.keys)
        if outcome is not None and outcome.state != "done":
            self.remove()
        elif not self._resume:
            raise UsageError(
                f"{self._place} holds an unfinished run of the same queries over the same files: "
                "add --resume to go on with it, or give another --store"
            )

    def _sweep(self) -> None:
        for entry in list(entries(self._store, f"jobs/{self._job_id}/")):
            self._store.delete(entry.key)


def _job_id(request: LocalRequest) -> str:
    """Return the id of the job (rule 1)."""
    asked = request.as_request()
    names = {
        table.name: [(one.name, one.place.identity, one.reading) for one in _files(request, table)]
        for table in request.app.tables
    }
    return digest(msgspec.json.encode((__version__, asked, names), order="deterministic"))


def _files(request: LocalRequest, table: Table) -> Sequence[InputFile]:
    """Return the files of a table; empty if it has none, since no query may read it."""
    try:
        return request.sources.files(table)
    except DataError:
        return ()
