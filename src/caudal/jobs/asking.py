"""Questions to a version of a dataset: a job that names the version instead of sending tables.

Rules
1. Who may not read a dataset learns the same as if there were none: DatasetNotFoundError.
2. The job's id is a digest of who asks, the dataset, its version, the request, the release and the
   versions of its parts. So the same question again finds the same job, and its stored results,
   until another release answers: it may have mended a wrong answer. A query that may answer
   otherwise each time has a number of the client's own in its id. Only who asks may create a job
   under it (derived_ids.py).
3. A job that failed, expired or was cancelled, of which a query failed, or whose results are gone,
   is begun anew: what was missing, such as memory, may be there now.
4. The order is: create job.json, name the files of its tables, mark the shared outputs as used,
   publish what is missing, answer. Whoever repeats the question repeats what was not done.

Thread-safe.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from caudal.datasets import cluster_place
from caudal.datasets.commits import newer
from caudal.datasets.contents import Contents
from caudal.datasets.shelf import open_shelf, require_same
from caudal.datasets.tables import cleaning_digests
from caudal.formats.job import AskedDataset, AskedTable, Request
from caudal.formats.replies import AskReceipt, Question
from caudal.jobs.answered import lacks_answers
from caudal.jobs.derived_ids import derived_id
from caudal.jobs.facts import OneLook
from caudal.jobs.interfaces import GoneError
from caudal.jobs.janitor import delete_ended
from caudal.jobs.loads import OPTION
from caudal.jobs.ports import Ports
from caudal.jobs.reconcile import missing_tasks
from caudal.jobs.requests import identity
from caudal.jobs.runs import JobRun, read_outcome
from caudal.jobs.service import JobService
from caudal.jobs.shared_maps import facts_of, mark_used, name_files
from caudal.sql.volatile import may_vary
from caudal.store.port import Store
from caudal.version import __version__

_AT_ONCE = 1_000  # messages that are published together


@dataclass(frozen=True)
class WatchedDataset:
    """A dataset that a client watches."""

    store: Store
    contents: Contents

    @property
    def number(self) -> int:
        return self.contents.number


@dataclass(frozen=True)
class PlacedQuestion:
    """A question whose dataset and version were found."""

    job_id: str
    request: Request
    contents: Contents


@dataclass(frozen=True)
class DatasetQuestions:
    """The requests of clients that ask datasets."""

    jobs: JobService
    ports: Ports

    def place(self, owner: str, name: str, question: Question) -> PlacedQuestion:
        """Find the dataset and the version, and check the application against it."""
        found = cluster_place.find(self.ports.store, owner, name)
        shelf = open_shelf(name, question.version, found.below)
        head, text = shelf.contents.head, question.request.application
        cleanings = cleaning_digests(text.tables, text.sentiment)
        require_same(name, head, text.name, cleanings, OPTION)
        tables = tuple(AskedTable(one.name, one.columns) for one in head.tables)
        asked = AskedDataset(name, found.root, shelf.contents.number, tables)
        request = msgspec.structs.replace(question.request, dataset=asked)
        job_id = _job_id(owner, question, request, self.ports.compute.versions)
        return PlacedQuestion(job_id, request, shelf.contents)

    def ask(self, owner: str, placed: PlacedQuestion) -> AskReceipt:
        """Create the job, or find the one of an equal question."""
        old = self.ports.job_runs.open(placed.job_id)
        if old is not None and lacks_answers(self.ports.store, old):  # rule 3
            delete_ended(self.ports, old)
        receipt = self.jobs.create_checked(placed.job_id, owner, placed.request)
        job_run = self.ports.job_runs.open(placed.job_id)
        if job_run is None:
            raise GoneError(f"there is no job {placed.job_id}")
        if read_outcome(self.ports.store, job_run.keys) is None:
            self._begin(job_run, placed.contents)
        return AskReceipt(
            placed.job_id, receipt.run, placed.contents.number, receipt.tables, receipt.new
        )

    def watch(
        self, owner: str, name: str, watched: "WatchedDataset | None" = None
    ) -> "WatchedDataset":
        """Return the dataset with its newest version; cheap if it was watched before."""
        if watched is not None:
            return WatchedDataset(watched.store, newer(watched.store, watched.contents))
        found = cluster_place.find(self.ports.store, owner, name)
        return WatchedDataset(found.below, found.contents())

    def _begin(self, job_run: JobRun, contents: Contents) -> None:
        """Name the files, and publish every task that may run and has no output (rule 4)."""
        store, bounds = self.ports.store, self.ports.bounds
        name_files(store, job_run, contents)
        mark_used(store, job_run, self.ports.clock.now(), bounds.unused_seconds)
        facts = OneLook(facts_of(store, job_run))
        tasks = missing_tasks(job_run.shape, facts, bounds.lane_limit)
        for start in range(0, len(tasks), _AT_ONCE):
            messages = [job_run.message(one) for one in tasks[start : start + _AT_ONCE]]
            self.ports.broker.publish(messages)


def _job_id(owner: str, question: Question, request: Request, versions: Mapping[str, str]) -> str:
    """Return the id of the job that answers a question (rule 2)."""
    assert request.dataset
    text = request.application
    chosen = [one.sql for one in text.queries if not request.queries or one.name in request.queries]
    once = question.once if may_vary(chosen) else ""
    asked = (owner, request.dataset.root, request.dataset.version, identity(request), once)
    content = msgspec.json.encode((*asked, __version__, sorted(versions.items())))
    return derived_id("ask", owner, content)
