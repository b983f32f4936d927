"""One run with a dataset: loaders, askers, watchers, compaction, vacuum, sweeps, and an upgrade."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

from caudal.datasets.cluster_place import locate
from caudal.datasets.commits import FilesVacuumedError, commit, create_dataset, next_version
from caudal.datasets.compaction import compact
from caudal.datasets.contents import Contents, last_vacuum
from caudal.datasets.documents import DatasetVersion, LoadedSource, StoredFile, TableChange
from caudal.datasets.files import create_file
from caudal.datasets.sources import load_id, sort_sources, still_new
from caudal.datasets.vacuum import vacuum
from caudal.errors import FormatError, StoreError
from caudal.formats.job import Options, Request, Text
from caudal.formats.keys import REJECTS
from caudal.formats.replies import AskReceipt, Question
from caudal.jobs.interfaces import ConflictError, GoneError, JobError, UnreachableError
from caudal.jobs.upload import Upload, Uploader, UploadRequest
from caudal.store.port import Store, entries
from tests.simulation.applications import LITTLE
from tests.simulation.dataset_sources import ALL, QUERIES, SimulatedSource, head, pieces
from tests.simulation.dataset_truth import ROOT, DatasetTruth
from tests.simulation.faults import Aim, Rates
from tests.simulation.invariants import ViolationError
from tests.simulation.remembering import NEW, OLD
from tests.simulation.world import MOST_SECONDS, MOST_STEPS, Report, World, finish

UNUSED_SECONDS = 35.0
_REST_SECONDS = 400.0
_KEEP_SECONDS = 60.0  # of versions that a vacuum keeps
_TRIES = 30
_EXPLAINED = ("another version of", "was vacuumed")  # why a question may fail


class DatasetWorld(World):
    """Builds everything from the seed and runs it to its end."""

    def __init__(self, seed: int, aims: tuple[Aim, ...] = (), rates: Rates | None = None) -> None:
        super().__init__(seed, ("plain",), aims, rates)
        self.stories = []
        self.dataset_truth = DatasetTruth(self.memory)
        self.hashing = self.chance.choice((OLD, NEW))
        self.libraries = ("1", "2")
        self.upgrade_at = self.scheduler.now + self.chance.uniform(10, 120)
        self.bounds = replace(self.bounds, unused_seconds=UNUSED_SECONDS, sweep_seconds=10.0)

    def _created(self, key: str) -> None:
        try:
            self.dataset_truth.created(key)
        except Exception as error:
            self.scheduler.errors.append(error)
            raise

    def run(self) -> Report:
        create_dataset(locate(self.memory, "me", "shelf").below, head())
        self._start("nature", "nature", self._nature)
        self._start("nature", "upgrade", self._upgrade)
        begin, chance = self.clients._begin, self.chance
        for source in chance.sample(ALL, chance.choice((2, 3, 4))):
            for _ in range(chance.choice((1, 1, 2))):
                begin(partial(self._loader, source), fragile=True)
            begin(partial(self._loader, source))
        for _ in range(chance.choice((2, 3))):
            begin(self._asker)
        begin(self._watcher)
        if chance.random() < 0.6:
            begin(self._keeper, fragile=chance.random() < 0.3)
        if chance.random() < 0.5:
            begin(self._eraser)
        self.scheduler.run(self._settled, MOST_STEPS, MOST_SECONDS)
        rest = self.scheduler.now + _REST_SECONDS
        self.scheduler.run(lambda: self.scheduler.now > rest, MOST_STEPS, MOST_SECONDS)
        truth = self.dataset_truth
        truth.check_end()
        outcomes = [one.state for many in truth.outcomes.values() for one in many]
        coverage = self.faults.coverage
        return Report(
            self.seed, self.aims, self.scheduler.steps, truth.finished, outcomes, coverage
        )

    def _settled(self) -> bool:
        if not self.is_calm or self.clients.present or self.scheduler.thaws > self.scheduler.now:
            return False
        return not self.dataset_truth.running()

    def _upgrade(self) -> None:
        """From some moment on, processes that start have the new hash; then all of them do."""
        self.scheduler.give_way(self.upgrade_at)
        self.hashing = NEW
        self.scheduler.give_way(self.upgrade_at + self.chance.uniform(0, 60))
        for process in [*(pair[0] for pair in self.gateways), *self.workers]:
            self.scheduler.kill(process)

    def _dataset(self) -> Store:
        return locate(self.store, "me", "shelf").below

    def _loader(self, source: SimulatedSource, client: Uploader) -> None:
        """Load a source, perhaps under another name than others, until it is loaded."""
        client.clock.sleep(self.chance.uniform(0, 120))
        name = f"{source.table}-{source.variant}-{self.chance.choice('ab')}.csv"
        for _ in range(_TRIES):
            try:
                load(self._dataset(), source, name, client.clock.now(), self.chance)
                return
            except (StoreError, FilesVacuumedError):
                client.clock.sleep(5.0)

    def _keeper(self, client: Uploader) -> None:
        """Compacts and vacuums."""
        for _ in range(3):
            client.clock.sleep(self.chance.uniform(20, 100))
            for work in (
                lambda: compact(self._dataset(), client.clock.now()),
                lambda: vacuum(self._dataset(), client.clock.now(), _KEEP_SECONDS, _KEEP_SECONDS),
            ):
                self._try(work)

    def _eraser(self, client: Uploader) -> None:
        """Deletes shared outputs whenever it likes: they may be swept at any time."""
        for _ in range(6):
            client.clock.sleep(self.chance.uniform(1, 40))
            found = [entry.key for entry in entries(self.memory, f"{ROOT}mapped/")]
            for key in self.chance.sample(found, min(2, len(found))):
                self._try(partial(self.store.delete, key))

    def _try(self, work: Callable[[], object]) -> None:
        try:
            work()
        except (StoreError, FormatError) as error:
            if "differs from version" in str(error):
                raise

    def _asker(self, client: Uploader) -> None:
        for _ in range(self.chance.choice((2, 3))):
            client.clock.sleep(self.chance.uniform(0, 60))
            newest = self.dataset_truth.newest()
            version = self.chance.choice((None, None, self.chance.randrange(newest + 1)))
            self._question(client, version)

    def _watcher(self, client: Uploader) -> None:
        """Asks every version that it hears of; they only grow."""
        last = -1
        for _ in range(6):
            client.clock.sleep(self.chance.uniform(5, 40))
            try:
                number: int = client.gateways.newest("shelf")  # type: ignore[attr-defined]
            except JobError:
                continue
            if number < last:
                raise ViolationError(f"version {number} comes after {last}")
            if number > last:
                last = number
                self._question(client, number)

    def _question(self, client: Uploader, version: int | None) -> None:
        """Ask until there is an answer; it must be that of the version."""
        request = Request(
            Text.of(LITTLE), QUERIES, {"below": 20},
            Options(partitions=2, group=self.chance.choice((1, 2, 256)), silent_seconds=60.0,
                    keep_seconds=self.chance.choice((30.0, 1e7))),
        )  # fmt: skip
        for _ in range(_TRIES):
            try:
                if self._answered(client, request, version):
                    return
            except ConflictError as error:
                if version is not None and "was vacuumed" in str(error):
                    return
                raise ViolationError(f"version {version} was refused: {error}") from error
            except (GoneError, UnreachableError):
                pass
            client.clock.sleep(5.0)
        raise ViolationError(f"version {version} was never answered")

    def _answered(self, client: Uploader, request: Request, version: int | None) -> bool:
        question = Question(request, version)
        receipt: AskReceipt = client.gateways.ask("shelf", question)  # type: ignore[attr-defined]
        order = UploadRequest(receipt.job, request, {})
        errand = Upload(client, order, receipt.run, receipt.tables)
        errand.nothing_to_send()
        outcome = errand.follow()
        scheduler = self.scheduler
        scheduler.note(scheduler.current, f"SEES {outcome.state}", outcome.reason)
        if outcome.state != "done":
            if outcome.state == "failed" and not any(one in outcome.reason for one in _EXPLAINED):
                raise ViolationError(f"a question failed: {outcome.reason}")
            return False
        for query, result in errand.results.items():
            if query != REJECTS:
                self.dataset_truth.check_rows(query, receipt.version, result)
        return True


def load(store: Store, source: SimulatedSource, name: str, now: float, chance: Random) -> None:
    """Load a source as the embedded loader does, without its threads."""
    contents = create_dataset(store, head())
    offered = source.offered(name)
    new = sort_sources(contents, [offered], again=True).new
    if not new:
        return
    folder = load_id(contents, new, 1, f"simulated {last_vacuum(contents)}")
    files: dict[str, list[StoredFile]] = {}
    for table, rows in source.rows().items():
        for number, part in enumerate(pieces(rows, chance)):
            file = create_file(store, table, folder, f"{table}-{number:08}", part)
            files.setdefault(table, []).append(file)

    def decide(newest: Contents) -> DatasetVersion | None:
        if not still_new(newest, [offered])[0]:
            return None
        number, time = next_version(newest, now)
        loaded = LoadedSource(source.table, name, offered.bytes, offered.digest)
        changes: dict[str, tuple[TableChange, ...]] = {
            table: (TableChange(tuple(some)),) for table, some in files.items()
        }
        return DatasetVersion(number, time, "load", folder, (loaded,), changes)

    commit(store, contents, decide)


def simulate_dataset(seed: int, *, aims: tuple[Aim, ...] = ()) -> Report:
    """One run; a failure carries the seed and the trace."""
    return finish(lambda: DatasetWorld(seed, aims))
