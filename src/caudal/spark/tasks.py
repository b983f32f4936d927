"""What runs in Python processes of Spark: the steps of a plan over rows of Spark.

Rules
1. A task depends only on its rows and on `Work`, so a repeated or speculative attempt gives the
   same rows. Spark takes the rows of one attempt.
2. A foreseen error is a row for the driver, not an exception: Spark would try again and show a
   trace of Java. What may be the fault of a machine (a disk, a network, a lack of memory) is
   raised, so that Spark tries again.
3. Steps and their sandboxes are kept in the process for the next task, also for one of other work.
   They are lent to one task at a time, because a server may run tasks in threads; such threads have
   no lasting local data.
4. Spark's daemon collects garbage after every task, and looks through all that is loaded. This took
   as long as mapping several megabytes, so the first task takes what it loaded out of that.
"""

import atexit
import contextlib
import gc
import math
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property, partial
from pathlib import Path

import msgspec
import pyarrow as pa

from caudal.datasets.files import MissingFileError, read_file
from caudal.decoding import decode_json, decode_msgpack
from caudal.duck.profile import MeasuredSandbox, Measurements
from caudal.duck.sandbox import Sandbox, SandboxLimits
from caudal.errors import (
    CaudalError,
    DataError,
    NotFoundError,
    StoreError,
    UnreadableError,
    UsageError,
)
from caudal.files.places import read_range
from caudal.formats import batch as batch_format
from caudal.formats import frame
from caudal.formats import job as job_format
from caudal.formats.digest import digest
from caudal.formats.file_groups import FileGroup
from caudal.formats.keys import Task
from caudal.jobs.failed_queries import failed_output
from caudal.jobs.interfaces import InputPart, Inputs
from caudal.jobs.runs import JobRun
from caudal.kernels.sentiment import SentimentModel, load_model
from caudal.spark.routes import Routes
from caudal.spark.rows import (
    ERROR,
    PROFILE,
    SliceRow,
    TaskRows,
    driver_rows,
    folded_rows,
    mapped_rows,
    record_batches,
)
from caudal.store.open_store import open_store
from caudal.store.port import Store
from caudal.worker.task_steps import Steps, StepSettings

_MOST_KEPT = 8
_KEPT: list[tuple[bytes, "OpenWork"]] = []
_LOCK = threading.Lock()


class Work(msgspec.Struct, frozen=True):
    """All that tasks need besides their rows. `heads` are batches whose records executors read
    from `paths`, by number; or groups of files of the dataset at `dataset`. `hints` are streams of
    complete stages. `model` is the version of a sentiment model in a folder."""

    job: bytes
    memory_bytes: int
    model: str = ""
    table: str = ""
    heads: dict[int, bytes] = {}
    paths: dict[str, str] = {}
    dataset: str = ""
    hints: dict[str, list[bytes]] = {}
    profile: bool = False


def map_rows(work: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Clean and scan batches: rows of (number, payload), or numbers of heads in the column `id`."""
    with _opened(work) as opened:
        for batch in batches:
            for number, payload in _numbered(batch, opened.work):
                yield from record_batches(opened.mapped(number, payload))


def fold_rows(work: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Compute a fold or a finish from the rows of its inputs."""
    address = None
    with contextlib.closing(TaskRows(_spill_folder())) as rows, _opened(work) as opened:
        for batch in batches:
            if batch.num_rows:
                address = batch.column("task")[0].as_py()
                rows.add(batch)
        if address is not None:
            yield from record_batches(opened.folded(address, rows))


@cache
def settle() -> None:
    """Let the garbage collector pass over all that is loaded by now; once in a process."""
    gc.collect()
    gc.freeze()


class OpenSteps:
    """Steps with their sandboxes, which are expensive to open, and what they measured."""

    def __init__(self, work: Work, spill: Path) -> None:
        self.serves = _served(work)
        self._models: dict[str, SentimentModel] = {}  # by name
        self.measured = Measurements() if work.profile else None
        # As in the embedded engine, a query may take any time: the cluster is the user's.
        limits = SandboxLimits(work.memory_bytes, math.inf, spill, trusted=True)
        opened = partial(MeasuredSandbox, measurements=self.measured) if self.measured else Sandbox
        self.steps = Steps(StepSettings(limits, self._models, open_sandbox=opened))
        self._room = bytearray()

    def require_model(self, name: str, version: str) -> None:
        """Raise UsageError if the model in the folder of this name has another version."""
        if not version:
            return
        if name not in self._models:
            self._models[name] = load_model(name)
        if self._models[name].version != version:
            folder = name.partition(":")[2]
            raise UsageError(
                f"the sentiment model in {folder} of an executor differs from that of the driver: "
                "put the same files there on every executor"
            )

    def room(self, size: int) -> memoryview:
        """Return memory for one batch, the same each time: new memory of that size costs as much
        time as reading a file into it."""
        if len(self._room) < size:
            self._room = bytearray(size + size // 8)
        return memoryview(self._room)[:size]


class OpenWork:
    """Work that a thread has opened, with the tools that do it."""

    def __init__(self, work: Work, tools: OpenSteps) -> None:
        self.work = work
        self.tools = tools
        self.job_run = JobRun.of(job_format.decode(work.job, "the job"))
        self.routes = Routes(self.job_run.split, self.job_run.job.request.options.partitions)
        self.hints: Inputs = {
            stage: [InputPart(data) for data in streams] for stage, streams in work.hints.items()
        }

    def mapped(self, number: int, payload: bytes) -> Iterator[SliceRow]:
        """Return the rows of one batch."""
        task = Task("map", self.work.table, number)
        try:
            self._require_model()
            inputs = {**self.hints, task.name: self._read(payload)}
            data = self.tools.steps.run(self.job_run.job, task, inputs, alone=True)
            yield from mapped_rows(data, number, self.routes)
        except CaudalError as error:
            if _may_pass(error):
                raise
            yield from error_rows(error, number)
        yield from self._measurements(number)

    def folded(self, address: int, rows: TaskRows) -> Iterator[SliceRow]:
        """Return the rows of a fold, or the result of a finish."""
        task, streams = self.routes.tasks[address], rows.streams()
        inputs = {stage: streams.get(stage, ()) for stage in self.routes.inputs(task)}
        try:
            self._require_model()
            yield from self._output(task, self.computed(task, inputs))
        except CaudalError as error:
            yield from error_rows(error, address)
        yield from self._measurements(address)

    def _require_model(self) -> None:
        name = self.job_run.job.request.application.sentiment
        self.tools.require_model(name, self.work.model)

    def computed(self, task: Task, inputs: Inputs) -> bytes:
        """Return the output of a fold or finish; if its query failed, the output says why."""
        try:
            return self.tools.steps.run(self.job_run.job, task, inputs, alone=True)
        except CaudalError as error:
            failed = failed_output(self.job_run, task, error, 0)
            if failed is None:
                raise
            return failed

    def _output(self, task: Task, data: bytes) -> Iterator[SliceRow]:
        if task.kind == "finish":
            return driver_rows(task.name, 0, data)
        return folded_rows(data, self.routes)

    def _measurements(self, number: int) -> Iterator[SliceRow]:
        if self.tools.measured is None:
            return iter(())
        return driver_rows(PROFILE, number, msgspec.json.encode(self.tools.measured.drained()))

    def _read(self, payload: bytes) -> list[InputPart]:
        """Return what a map reads: a batch, or files of a dataset."""
        if not self.work.dataset:
            return [InputPart(payload, body=self._records(payload))]
        files = decode_json(payload, FileGroup).files
        try:
            return [InputPart(read_file(self._store, self.work.table, one)) for one in files]
        except MissingFileError as error:
            raise DataError(
                f"{self.work.dataset}: an executor misses a file ({error}). Is the dataset where "
                "all executors reach it, and was this version not vacuumed meanwhile?"
            ) from None

    @cached_property
    def _store(self) -> Store:
        return open_store(self.work.dataset)

    def _records(self, payload: bytes) -> memoryview | None:
        """Read the records of a batch from the file if only its head was sent; else return None."""
        index, body = frame.decode(
            frame.of_bytes(payload), batch_format.MAGIC, batch_format.BatchHeader, "a batch"
        )
        if len(payload) > body or not index.bytes:
            return None
        records = self.tools.room(index.bytes)
        count = read_range(self.work.paths[index.file], index.offset, records)
        if count != index.bytes or digest(records) != index.digest:
            raise DataError(
                f"{index.file}: an executor reads other bytes than the driver: put the file where "
                "all of them read the same one, or give --inputs sent"
            )
        return records


def error_rows(error: CaudalError, number: int) -> Iterator[SliceRow]:
    """Return an error as rows for the driver."""
    told = msgspec.json.encode([type(error).__name__, str(error)])
    return driver_rows(ERROR, number, told)


def _may_pass(error: CaudalError) -> bool:
    """Return whether another attempt may succeed, later or on another machine."""
    is_passing = isinstance(error, StoreError | UnreadableError)
    return is_passing and not isinstance(error, NotFoundError)


@contextlib.contextmanager
def _opened(encoded: bytes) -> Iterator[OpenWork]:
    """Lend opened work: that of an earlier task if it is the same, else with the tools of one."""
    with _LOCK:
        found = _taken(lambda known, _: known == encoded)
        if found is None:
            work = decode_msgpack(encoded, Work)
            wanted = _served(work)
            other = _taken(lambda _, opened: opened.tools.serves == wanted)
            found = OpenWork(work, other.tools if other else OpenSteps(work, _spill_folder()))
    yield found
    with _LOCK:  # after an error it is not kept
        _KEPT.append((encoded, found))
        surplus = [_KEPT.pop(0)[1] for _ in range(len(_KEPT) - _MOST_KEPT)]
    for one in surplus:
        one.tools.steps.close()


def _served(work: Work) -> tuple[int, bool, str]:
    """Return what tools depend on."""
    return work.memory_bytes, work.profile, work.model


def _taken(fits: Callable[[bytes, OpenWork], bool]) -> OpenWork | None:
    place = next((n for n, (known, one) in enumerate(_KEPT) if fits(known, one)), None)
    return _KEPT.pop(place)[1] if place is not None else None


def _numbered(batch: pa.RecordBatch, work: Work) -> Iterator[tuple[int, bytes]]:
    if "payload" not in batch.schema.names:
        numbers = batch.column("id").to_pylist()
        return ((number, work.heads[number]) for number in numbers)
    columns: Mapping[str, list[object]] = batch.to_pydict()
    return zip(columns["number"], columns["payload"], strict=True)  # type: ignore[arg-type]


@cache
def _spill_folder() -> Path:
    """Make a folder of this process below those of Spark, which deletes them with the application:
    its Python workers end without running `atexit`. Elsewhere it goes with the process."""
    place = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    root = place if place and Path(place).is_dir() else None
    folder = tempfile.mkdtemp(prefix="caudal-", dir=root)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
