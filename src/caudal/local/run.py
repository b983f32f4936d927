"""A run in one process whose progress lies in a store: killed at any moment, it can go on.

Rules
1. The run is a job (jobs/service.py) whose id is derived from what is asked: application, queries,
   parameters, options, the files' names. So the same command finds its unfinished run again.
2. Everything is cut anew when a run is resumed, and every batch compared with the digest that is
   stored: a file that changed is an error, never a mixture. What is stored is not stored again, and
   a task that is done is not done again.
3. The broker is in memory: what it held when the process was killed follows from the store
   (jobs/reconcile.py) and is published once, at the beginning. After that every task publishes
   what follows from it, as in a cluster.
4. The run stays in the store until its answers are where they were wanted; only then it is
   removed, job.json first. A run that failed is removed at once: it would fail again. A query
   that failed alone leaves the others their answers (failures.py).
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
    """A run in a store; what it left there is removed when the block ends well.

    `place` is what the user calls the store. It must prove that only the first of two creates wins.
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
        """Answer the chosen queries, from the beginning or from where an earlier run was killed."""
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
        """Everything of the run; job.json first, so that what is left after a kill is garbage."""
        self._store.delete(job_key(self._job_id))
        self._sweep()

    def _prepare(self) -> None:
        """Refuse to go on unasked; clear away what a run that has ended left behind."""
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
    """Rule 1."""
    asked = request.as_request()
    names = {
        table.name: [(str(path), str(path.absolute())) for path in _files(request.sources, table)]
        for table in request.app.tables
    }
    return digest(msgspec.json.encode((__version__, asked, names), order="deterministic"))


def _files(sources: Sources, table: Table) -> Sequence[Path]:
    """The files of a table; none if there are none, which matters only if a query reads them."""
    try:
        return sources.files(table)
    except DataError:
        return ()
