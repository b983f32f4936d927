"""The Spark engine: the plan that a cluster runs, as frames of Spark (ADR 49, ADR 63).

Rules
1. Tables are mapped one after the other, in the order of the plan, so that small tables give hints
   to large ones. The driver cuts in advance (inputs.py). Then come the folds, level by
   level, then the finishes.
2. The driver decides from heads only: which scans and folds failed, which rows were rejected, how
   large the inputs of tasks are.
3. A query that reads a failed stage fails with the reason of that stage; the others are answered.
4. When all that is still to be read is small, the driver computes the rest of the plan. A level of
   folds on Spark takes longer than that. A finish with large inputs runs on an executor.
5. For the same reason the driver maps light tables, while it cuts the next one (ADR 73).
"""

import contextlib
import itertools
import math
import operator
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from caudal import errors
from caudal.datasets.shelf import Shelf, require_same
from caudal.datasets.tables import cleaning_digests
from caudal.decoding import decode_json
from caudal.duck.profile import Measurements, profile_stages
from caudal.duck.sandbox import SandboxLimits
from caudal.errors import (
    CaudalError,
    QueryError,
    SparkFailedError,
    StoreError,
    UnreadableError,
)
from caudal.files.batches import CutNote
from caudal.files.file_notes import file_notes
from caudal.files.sources import Sources
from caudal.formats import job as job_format
from caudal.formats import mapped, outputs
from caudal.formats.frame import of_bytes
from caudal.formats.job import Job, Request
from caudal.formats.keys import Task
from caudal.jobs.interfaces import Inputs, Planned
from caudal.jobs.kept_plans import KeptPlans
from caudal.jobs.plan import TableMap, from_json, to_json
from caudal.jobs.runs import JobRun
from caudal.kernels.sentiment import folder_version
from caudal.local.job import LocalRequest, run_and_settle
from caudal.local.table_progress import TableReport
from caudal.model import LEXICON, Application, ParameterValue
from caudal.results.answers import Answers, Result, TableProfile
from caudal.results.rejects import Rejects
from caudal.run_options import Progress, RunOptions, Silent, SparkInputs
from caudal.spark.frames import Heads, OutputFrames, Streams, is_light, is_small, map_tasks
from caudal.spark.inputs import Batching, DatasetInputs, FileInputs, Wave, waves_ahead
from caudal.spark.outputs import first_failure
from caudal.spark.rising import RisingProgress
from caudal.spark.routes import Routes
from caudal.spark.rows import ERROR, PROFILE, folded_rows
from caudal.spark.session import Share, SparkSide, open_session
from caudal.spark.shipping import shipped_code
from caudal.spark.tasks import OpenSteps, OpenWork, Work
from caudal.version import __version__
from caudal.worker.compute import LocalCompute

_TASK_BYTES = 1 << 30  # memory of a task without a limit
_MOST_HINT_BYTES = 8 << 20  # of all hints of a table, which each of its tasks gets


def _plan(request: Request, moment: float) -> Planned:
    return LocalCompute(SandboxLimits(seconds=math.inf, trusted=True)).plan(request, moment)


_PLANS = KeptPlans(_plan)  # of this process: a session is asked again and again


def run(
    app: Application,
    sources: Sources,
    queries: Sequence[str] | None = None,
    parameters: Mapping[str, ParameterValue] | None = None,
    options: RunOptions | None = None,
    progress: Progress | None = None,
) -> Answers:
    """Answer the chosen queries on Spark, with the rows of the embedded engine."""
    return _run(LocalRequest.of(app, sources, queries, parameters, options, progress))


def ask(
    app: Application,
    shelf: Shelf,
    queries: Sequence[str] | None = None,
    parameters: Mapping[str, ParameterValue] | None = None,
    options: RunOptions | None = None,
    progress: Progress | None = None,
) -> Answers:
    """Answer the chosen queries over a version of a dataset on Spark."""
    request = LocalRequest.of(app, Sources(Path()), queries, parameters, options, progress)
    cleanings = cleaning_digests(app.tables, request.options.sentiment or app.sentiment)
    require_same(shelf.place, shelf.contents.head, app.name, cleanings)
    return _run(request, DatasetInputs(shelf))


def _run(request: LocalRequest, dataset: DatasetInputs | None = None) -> Answers:
    with open_session(request.options.spark) as side:
        if dataset is not None:
            inputs = SparkInputs(request.options.spark.inputs)
            dataset.require_reach(inputs, is_local=side.is_local)

        def ask_once(one: LocalRequest) -> Answers:
            with tempfile.TemporaryDirectory(prefix="caudal-") as folder, side.frames():
                return SparkJob(side, one, Path(folder), dataset).answers()

        return run_and_settle(request, ask_once)


@dataclass
class SparkJob:
    """One run of a request. `folder` is for spilled data of the driver."""

    side: SparkSide
    request: LocalRequest
    folder: Path
    dataset: DatasetInputs | None = None

    def __post_init__(self) -> None:
        options = self.request.options
        self.rejects = Rejects(options.reject_sink, keeps_records=options.records)
        memory = options.memory_limit or _TASK_BYTES
        self.job_run = JobRun.of(self._planned())
        self.routes = Routes(self.job_run.split, options.partitions)
        job = self.job_run.job
        model = folder_version(job.request.application.sentiment)
        self.work = Work(job_format.encode(job), memory, model, profile=options.profile)
        self.measured = Measurements() if options.profile else None

    def answers(self) -> Answers:
        """Return all answers; `failures` names failed queries. Raise errors of the whole job."""
        self.frames = OutputFrames(self.side, self.folder)
        self.known = self.frames.known
        self.here = OpenWork(self._work_here(), OpenSteps(self.work, self.folder))
        with contextlib.closing(self.frames), contextlib.closing(self.here.tools.steps):
            return self._answers()

    def _work_here(self) -> Work:
        """Return the work of this process: the same job with one partition. Each task costs time of
        its own, and partitions change no answer, but for last bits of deviations (ADR 17)."""
        job = self.job_run.job
        options = msgspec.structs.replace(job.request.options, partitions=1)
        request = msgspec.structs.replace(job.request, options=options)
        alone = msgspec.structs.replace(job, request=request)
        return msgspec.structs.replace(self.work, job=job_format.encode(alone))

    def _answers(self) -> Answers:
        inputs = self.dataset or self._files()
        self.code = shipped_code(self.side, self.request.options.spark)
        profiles = self._mapped(inputs)
        there = list(itertools.takewhile(self._folded_there, self.routes.levels))
        rest = self.here.routes.levels[len(there) :]
        for level in rest:
            self._fold_here(level)
        results, failures = self._finish(is_here=bool(rest))
        operators = self._operators()
        told = () if self.dataset else tuple(profiles)
        return Answers(results, self.rejects, told, operators, failures=failures)

    def _planned(self) -> Job:
        request = self.request.as_request()
        if self.dataset:
            request = msgspec.structs.replace(request, dataset=self.dataset.asked)
        planned = _PLANS.plan(request, self.request.moment)
        plan = planned.plan
        if not self.request.options.hints:
            plan = to_json(from_json(plan).without_hints())
        return Job(
            id="spark",
            run="run",
            owner="",
            created=self.request.moment,
            request=request,
            request_digest=job_format.request_digest(request),
            tables=planned.tables,
            plan=job_format.raw(plan),
            versions={"caudal": __version__},
        )

    def _files(self) -> FileInputs:
        options = self.request.options
        tables = {table.name: table for table in self.request.app.tables}
        files = {n: self.request.sources.files(tables[n]) for n in self.job_run.job.tables}
        inputs, cores = SparkInputs(options.spark.inputs), self.side.parallelism
        batching = Batching(options.batch_bytes, cores, self.work.memory_bytes)
        return FileInputs.of(files, batching, inputs, is_local=self.side.is_local)

    def _mapped(self, inputs: FileInputs | DatasetInputs) -> list[TableProfile]:
        """Map all tables, one after the other."""
        tables = [self.job_run.split.table(name) for name in self.job_run.job.tables]
        notes: dict[str, list[CutNote]] = {one.table.name: [] for one in tables}
        with contextlib.closing(waves_ahead(tables, inputs, notes)) as coming:
            return [
                self._map(table, inputs, notes[table], (wave for _, wave in found if wave))
                for table, found in itertools.groupby(coming, key=operator.itemgetter(0))
            ]

    def _map(
        self,
        table: str,
        inputs: FileInputs | DatasetInputs,
        notes: list[CutNote],
        waves: Iterable[Wave],
    ) -> TableProfile:
        """Map one table, wave by wave."""
        files = inputs.tables[table] if isinstance(inputs, FileInputs) else []
        progress = RisingProgress(self.request.progress) if files else Silent()
        strict = self.request.options.strict
        report = TableReport(table, files, self.rejects, progress, strict, notes)
        work = self._table_work(table, inputs)
        one, total, before = self.job_run.split.table(table), sum(f.size for f in files), 0
        for wave in waves:
            size, begun = wave.source_bytes, before
            before += size
            is_small_work = self._is_light(max(inputs.sizes[table], before), inputs)
            if is_small_work and self._mapped_here(wave, work, report):
                continue

            def told(share: float, begun: int = begun, size: int = size) -> None:
                progress.table(table, min(begun + int(share * size), max(total - 1, 0)), total)

            is_shown = files and type(self.request.progress) is not Silent  # its heirs may listen
            self._map_wave(one, wave, work, report, told if is_shown else None)
        self.rejects.notes += file_notes(files)
        return report.profile()

    def _table_work(self, table: str, inputs: FileInputs | DatasetInputs) -> Work:
        if isinstance(inputs, DatasetInputs):  # hints are not used for its files
            return msgspec.structs.replace(self.work, table=table, dataset=inputs.place)
        paths, hints = inputs.paths(table), self._hints(table)
        return msgspec.structs.replace(self.work, table=table, paths=paths, hints=hints)

    def _map_wave(
        self, one: TableMap, wave: Wave, work: Work, report: TableReport, told: Share | None
    ) -> None:
        count = len(wave.batches)
        near = self.frames.near_bytes(count * len(one.scans) * self.routes.partitions)
        work = msgspec.structs.replace(work, heads={} if wave.whole else wave.batches)
        heads = self._checked(
            self.frames.mapped(
                self._wave_frame(wave),
                self.code.task("map_rows", work),
                [scan.name for scan in one.scans],
                near,
                told,
            )
        )
        for number in wave.batches:
            found = mapped.open_bytes(heads[one.table.name, number])
            self.known.note_mapped(found.index, near)
            report.note(found)

    def _is_light(self, size: int, inputs: FileInputs | DatasetInputs) -> bool:
        """Return whether the driver maps a table of this size. A model may take long for it."""
        is_quick = self.job_run.job.request.application.sentiment == LEXICON
        return is_quick and is_light(size, sum(inputs.sizes.values()))

    def _mapped_here(self, wave: Wave, work: Work, report: TableReport) -> bool:
        """Map a wave in this process; return False if it cannot be read now. Spark tries again."""
        mapping = OpenWork(work, self.here.tools)
        try:
            rows = [row for batch in wave.batches.items() for row in mapping.mapped(*batch)]
        except (StoreError, UnreadableError):
            return False
        heads = self._checked(self.frames.mapped_here(rows))
        for number in wave.batches:
            found = mapped.open_bytes(heads[work.table, number])
            self.known.note_mapped(found.index, sys.maxsize)
            report.note(found)
        return True

    def _wave_frame(self, wave: Wave) -> Any:
        count = map_tasks(len(wave.batches), wave.source_bytes, self.side.parallelism)
        session = self.side.session
        if wave.whole:
            return session.createDataFrame(wave.rows()).repartition(count)
        first = min(wave.batches)
        return session.range(first, first + len(wave.batches), 1, count)

    def _hints(self, table: str) -> dict[str, list[bytes]]:
        """Return the streams of small complete stages from which hints are made."""
        wanted: list[str] = []
        for stage in self.job_run.hint_stages(table):
            is_whole = stage in self.known.sizes and stage not in self.known.failed
            if is_whole and self.known.size([*wanted, stage]) <= _MOST_HINT_BYTES:
                wanted.append(stage)
        streams = self.frames.collected(wanted)
        found = {stage: [part.data for part in streams.get(stage, ())] for stage in wanted}
        return {stage: parts for stage, parts in found.items() if parts}  # else it has no columns

    def _folded_there(self, level: range) -> bool:
        """Compute the folds of a level on Spark; return False if the driver computes the rest."""
        rest = (self.routes.inputs(task) for task in self.routes.tasks[level.start :])
        if is_small(self.known.size({stage for stages in rest for stage in stages})):
            return False
        healthy = self._healthy(self.routes, level)
        if healthy:
            near = self.frames.near_bytes(len(healthy) * self.routes.partitions)
            folds = {self.routes.tasks[address].name for address in healthy}
            heads = self._checked(self.frames.folded(self._grouped(healthy), folds, near))
            for address in healthy:
                task = self.routes.tasks[address]
                found, _ = outputs.decode_fold(of_bytes(heads[task.name, task.number]), task.name)
                self.known.note_folded(found, near)
        return True

    def _fold_here(self, level: range) -> None:
        """Compute the folds of a level in this process, each with all its slices at once."""
        routes = self.here.routes
        tasks = [routes.tasks[address] for address in self._healthy(routes, level)]
        streams = self._collected(tasks)
        for task in tasks:
            data = self.here.computed(task, self._inputs(task, streams))
            self.known.note_folded(outputs.decode_fold(of_bytes(data), task.name)[0], len(data))
            self.frames.made_here(folded_rows(data, routes))

    def _collected(self, tasks: Sequence[Task]) -> Streams:
        """Return the streams of all stages that these tasks read."""
        return self.frames.collected(stage for one in tasks for stage in self.routes.inputs(one))

    def _inputs(self, task: Task, streams: Streams) -> Inputs:
        """Return what a task reads of collected stages."""
        return {stage: streams.get(stage, ()) for stage in self.routes.inputs(task)}

    def _healthy(self, routes: Routes, level: range) -> list[int]:
        """Return the folds whose inputs have not failed; the others fail too."""
        healthy = []
        for address in level:
            task = routes.tasks[address]
            why = first_failure(routes.inputs(task), self.known.failed)
            if why is not None:
                self.known.failed.setdefault(task.name, why)
            else:
                healthy.append(address)
        return healthy

    def _grouped(self, addresses: Sequence[int]) -> Any:
        stages = {name for one in addresses for name in self.routes.inputs(self.routes.tasks[one])}
        return self.frames.grouped(addresses, stages, self.code.task("fold_rows", self.work))

    def _finish(self, *, is_here: bool) -> tuple[dict[str, Result], dict[str, QueryError]]:
        """Answer every query; with `is_here` in this process, else wherever its inputs fit."""
        failures: dict[str, QueryError] = {}
        here, there = [], []
        for address in self.routes.finishes:
            stages = self.routes.inputs(self.routes.tasks[address])
            why = first_failure(stages, self.known.failed)
            if why is not None:
                failures[self.routes.tasks[address].name] = QueryError(why)
            elif is_here or is_small(self.known.size(stages)):
                here.append(address)
            else:
                there.append(address)
        found = {**self._finished_here(here), **self._finished_there(there)}
        results = {}
        for query in self.job_run.split.queries:
            if query.name not in found:
                continue
            data, seconds = found[query.name]
            try:
                index, rows = outputs.decode_result(data, query.name)
            except QueryError as error:
                failures[query.name] = error
                continue
            results[query.name] = Result(query.name, index.title, rows, seconds)
            self.request.progress.query(query.name, seconds)
        return results, failures

    def _finished_there(self, addresses: Sequence[int]) -> dict[str, tuple[bytes, float]]:
        """Finish on executors; only results come back."""
        if not addresses:
            return {}
        began = time.perf_counter()
        heads = self._checked(self.frames.heads(self._grouped(addresses)))
        seconds = time.perf_counter() - began
        names = [self.routes.tasks[address].name for address in addresses]
        return {name: (heads[name, 0], seconds) for name in names}

    def _finished_here(self, addresses: Sequence[int]) -> dict[str, tuple[bytes, float]]:
        """Finish in this process, from the collected rows of all these queries."""
        found, tasks = {}, [self.routes.tasks[address] for address in addresses]
        streams = self._collected(tasks)
        for task in tasks:
            began = time.perf_counter()
            data = self.here.computed(task, self._inputs(task, streams))
            found[task.name] = data, time.perf_counter() - began
        return found

    def _checked(self, heads: Heads) -> Heads:
        """Return what tasks had for the driver. Raise the first error among them."""
        for (stage, _), data in heads.items():
            if stage == ERROR:
                raise _error(data)
            if stage == PROFILE and self.measured is not None:
                measured = decode_json(data, dict[str, tuple[int, int, int, float]])
                self.measured.add_drained(measured)
        return heads

    def _operators(self) -> Any:
        if self.measured is None or self.here.tools.measured is None:
            return ()
        self.measured.add_drained(self.here.tools.measured.drained())
        return profile_stages(self.job_run.split.plan, self.measured)


def _error(data: bytes) -> CaudalError:
    """Return an error that a task met, with its type."""
    name, message = decode_json(data, tuple[str, str])
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, CaudalError):
        return kind(message)
    return SparkFailedError(message)
