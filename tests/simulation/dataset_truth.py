"""What must hold of a dataset and of jobs that ask it, checked when an object comes to be."""

from dataclasses import dataclass, field

from caudal.datasets import keys as dataset_keys
from caudal.datasets.commits import open_contents
from caudal.datasets.contents import Contents
from caudal.datasets.delta import delta_commit
from caudal.datasets.documents import decode_version
from caudal.errors import NotFoundError
from caudal.formats import job as job_format
from caudal.formats.keys import REJECTS, Task, job_key
from caudal.formats.outcomes import Outcome, decode_outcome
from caudal.jobs.runs import JobRun
from caudal.store.below import StoreBelow
from caudal.store.memory import MemoryStore
from caudal.store.port import entries
from tests.simulation.dataset_sources import asked, data_of
from tests.simulation.invariants import ViolationError

ROOT = "datasets/me/shelf/000000/"


@dataclass
class DatasetTruth:
    """Looks at every object behind the back of all processes."""

    memory: MemoryStore
    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)
    finished: int = 0
    vacuumed: set[tuple[str, str]] = field(default_factory=set)

    @property
    def below(self) -> StoreBelow:
        return StoreBelow(self.memory, ROOT)

    def created(self, key: str) -> None:
        """Called at the very moment an object comes to be."""
        parts = key.split("/")
        if key.startswith(f"{ROOT}versions/") and key.endswith(".json"):
            self._check_version(int(parts[-1].removesuffix(".json")))
        elif "/_delta_log/" in key and key.endswith(".json"):
            self._check_log(parts[5], int(parts[-1].removesuffix(".json")))
        elif len(parts) == 5 and parts[3] == "results":
            self._check_result(parts[1], parts[2], parts[4])
        elif parts[-1] == "outcome.json":
            outcome = decode_outcome(self.memory.read(key), key)
            self.outcomes.setdefault(parts[1], []).append(outcome)

    def _check_version(self, number: int) -> None:
        """A version names files that are there, and brings nothing for the second time."""
        version = decode_version(self.below.read(dataset_keys.version_key(number)), number)
        for table, changes in version.changes.items():
            for file in (one for change in changes for one in change.add):
                if not self._has(dataset_keys.file_key(table, file.path)):
                    raise ViolationError(f"version {number} names {file.path}, which is not there")
        if version.vacuumed is not None:
            self.vacuumed |= {
                (table, path) for table, paths in version.vacuumed.files.items() for path in paths
            }
        held = [(one.table, one.digest) for one in self._contents().sources]
        if len(held) != len(set(held)):
            raise ViolationError(f"version {number} brings a source for the second time")

    def _check_log(self, table: str, number: int) -> None:
        version = decode_version(self.below.read(dataset_keys.version_key(number)), number)
        log = self.below.read(dataset_keys.delta_key(table, number))
        if log != delta_commit(version, table):
            raise ViolationError(f"the log of {table} differs from version {number}")

    def _check_result(self, job_id: str, run: str, query: str) -> None:
        """A result of a living job is the answer over its version."""
        job_run = self.job_run(job_id)
        if job_run is None or job_run.job.run != run or query == REJECTS:
            return
        dataset = job_run.job.request.dataset
        assert dataset
        result = self.memory.read(job_run.keys.output(Task("finish", query)))
        self.check_rows(query, dataset.version, result)
        self.finished += 1

    def check_rows(self, query: str, version: int, result: bytes) -> None:
        tables = data_of(self._contents(version))
        wrong = asked().difference(query, tables, result)
        if wrong is not None:
            raise ViolationError(f"wrong rows for {query} over version {version}: {wrong}")

    def check_end(self) -> None:
        """Every file of the newest version is there, and every log, and nothing is left over."""
        contents = self._contents()
        for table, files in contents.tables.items():
            for file in files:
                if not self._has(dataset_keys.file_key(table, file.path)):
                    raise ViolationError(f"{file.path} of the newest version is gone")
        for number in range(contents.number):  # the newest may still lack its logs
            for table in contents.tables:
                self._check_log(table, number)
        left = [entry.key for entry in entries(self.memory, f"{ROOT}mapped/")]
        if left:
            raise ViolationError(f"nobody sweeps {left[0]}")

    def running(self) -> list[str]:
        """The jobs that have a job.json and no outcome."""
        ids = {entry.key.split("/")[1] for entry in entries(self.memory, "jobs/")}
        found = [self.job_run(one) for one in sorted(ids)]
        return [
            one.job.id for one in found if one is not None and not self._has_key(one.keys.outcome)
        ]

    def job_run(self, job_id: str) -> JobRun | None:
        try:
            data = self.memory.read(job_key(job_id))
        except NotFoundError:
            return None
        return JobRun.of(job_format.decode(data, job_id))

    def newest(self) -> int:
        return self._contents().number

    def _contents(self, version: int | None = None) -> Contents:
        return open_contents(self.below, version)

    def _has(self, key: str) -> bool:
        return self._has_key(f"{ROOT}{key}")

    def _has_key(self, key: str) -> bool:
        try:
            self.memory.read(key, 0, 1)
        except NotFoundError:
            return False
        return True
