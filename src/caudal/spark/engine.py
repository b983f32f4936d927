"""The Spark engine: the plan that a cluster runs, as frames of Spark (ADR 49).

Rules
1. Tables are mapped one after the other, in the order of the plan, so that small tables give hints
   to large ones. Then come the folds, level by level, then the finishes.
2. Every frame of outputs is kept by Spark and computed once, by the action that collects its heads.
   The driver decides from heads only: which scans and folds failed, which rows were rejected, how
   large the inputs of a finish are.
3. A query that reads a failed stage fails with the reason of that stage; the others are answered.
4. A finish with small inputs runs in the driver, any other one on an executor.
"""

import contextlib
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from caudal import errors
from caudal.duck.profile import MeasuredSandbox, Measurements, profile_stages
from caudal.duck.sandbox import Sandbox, SandboxLimits
from caudal.errors import CaudalError, QueryError, SparkFailedError
from caudal.files.inputs import InputFile
from caudal.files.sources import Sources
from caudal.formats import job as job_format
from caudal.formats import mapped, outputs
from caudal.formats.frame import of_bytes
from caudal.formats.job import Job
from caudal.formats.keys import Task
from caudal.jobs.interfaces import Inputs
from caudal.jobs.plan import from_json, to_json
from caudal.jobs.runs import JobRun
from caudal.local.job import LocalRequest, settle
from caudal.local.table_progress import TableReport
from caudal.model import Application, ParameterValue
from caudal.results.answers import Answers, Result, TableProfile
from caudal.results.rejects import Rejects
from caudal.run_options import Progress, RunOptions, Silent
from caudal.spark.inputs import Wave, cut_waves
from caudal.spark.outputs import StageOutputs, first_failure
from caudal.spark.reach import reachable_files
from caudal.spark.routes import Routes
from caudal.spark.rows import ERROR, FOR_DRIVER, PROFILE, SPARK_SCHEMA, TaskRows
from caudal.spark.session import SparkSide, open_session
from caudal.spark.shipping import shipped_code
from caudal.spark.tasks import Work
from caudal.version import __version__
from caudal.worker.compute import LocalCompute
from caudal.worker.task_steps import Steps, StepSettings

_TASK_BYTES = 1 << 30  # memory of a task without a limit
_MOST_FINISH_BYTES = 32 << 20  # inputs of a finish in the driver
_MOST_HINT_BYTES = 8 << 20
_MOST_PARTITIONS = 2_000  # tasks of Spark per wave
_ADDRESSED = ("stage", "slice", "number", "part", "payload")


def run(
    app: Application,
    sources: Sources,
    queries: Sequence[str] | None = None,
    parameters: Mapping[str, ParameterValue] | None = None,
    options: RunOptions | None = None,
    progress: Progress | None = None,
) -> Answers:
    """Answer the chosen queries on Spark, with the rows of the embedded engine."""
    began = time.perf_counter()
    request = LocalRequest(
        *(app, sources, tuple(queries or ()), parameters or {}),
        *(options or RunOptions(), progress or Silent()),
    )
    with open_session(request.options.spark) as side:

        def ask(one: LocalRequest) -> Answers:
            with tempfile.TemporaryDirectory(prefix="caudal-") as folder, side.frames():
                return SparkJob(side, one, Path(folder)).answers()

        answers = settle(ask(request), request, ask)
    return replace(answers, seconds=time.perf_counter() - began)


@dataclass
class SparkJob:
    """One run of a request. `folder` is for spilled data of the driver."""

    side: SparkSide
    request: LocalRequest
    folder: Path
    frames: list[tuple[frozenset[str], Any]] = field(default_factory=list)  # stages, their outputs

    def __post_init__(self) -> None:
        options = self.request.options
        self.rejects = Rejects(options.reject_sink)
        self.measured = Measurements() if options.profile else None
        self.limits = SandboxLimits(
            options.memory_limit or _TASK_BYTES, spill=self.folder, trusted=True
        )
        self.job_run = JobRun.of(self._planned())
        self.routes = Routes(self.job_run.split, options.partitions)
        self.outputs = StageOutputs()
        self.work = Work(
            job_format.encode(self.job_run.job), self.limits.memory_bytes, profile=options.profile
        )

    def answers(self) -> Answers:
        """Return all answers; `failures` names failed queries. Raise errors of the whole job."""
        with contextlib.ExitStack() as self._closing:
            return self._answers()

    def _answers(self) -> Answers:
        files = self._files()
        options = self.request.options.spark
        self.code = shipped_code(self.side, options)
        every = [file for some in files.values() for file in some]
        shared = reachable_files(every, options.inputs, is_local=self.side.is_local)
        profiles = [self._map(table, files[table], shared) for table in files]
        for level in self.routes.levels:
            self._fold(level)
        results, failures = self._finish()
        plan = self.job_run.split.plan
        operators = profile_stages(plan, self.measured) if self.measured else ()
        return Answers(results, self.rejects, tuple(profiles), operators, failures=failures)

    def _planned(self) -> Job:
        request = self.request.as_request()
        planned = LocalCompute(self.limits).plan(request, self.request.moment)
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

    def _files(self) -> dict[str, list[InputFile]]:
        tables = {table.name: table for table in self.request.app.tables}
        return {name: self.request.sources.files(tables[name]) for name in self.job_run.job.tables}

    def _map(self, table: str, files: Sequence[InputFile], shared: frozenset[str]) -> TableProfile:
        """Map one table, wave by wave."""
        options = self.request.options
        report = TableReport(table, files, self.rejects, self.request.progress, options.strict)
        hints = self._hints(table)
        one, total, before = self.job_run.split.table(table), sum(f.size for f in files), 0
        for wave in cut_waves(one, files, options.batch_bytes, shared, report.notes):
            work = msgspec.structs.replace(
                self.work,
                table=table,
                hints=hints,
                heads={} if wave.whole else wave.batches,
                paths={file.name: file.place.identity for file in files},
            )
            size, begun = wave.source_bytes, before

            def told(share: float, begun: int = begun, size: int = size) -> None:
                done = min(begun + int(share * size), max(total - 1, 0))
                self.request.progress.table(table, done, total)

            source = self._wave_frame(wave)
            frame = self.side.keep(
                source.mapInArrow(self.code.task("map_rows", work), SPARK_SCHEMA)
            )
            self.frames.append((frozenset(scan.name for scan in one.scans), frame))
            heads = self._heads(frame, told)
            for number in wave.batches:
                found = mapped.open_bytes(heads[table, number])
                self.outputs.note_mapped(found.index)
                report.note(found)
            before += size
        return report.profile()

    def _wave_frame(self, wave: Wave) -> Any:
        count = min(len(wave.batches), _MOST_PARTITIONS)
        session = self.side.session
        if wave.whole:
            return session.createDataFrame(wave.rows()).repartition(count)
        first = min(wave.batches)
        return session.range(first, first + len(wave.batches), 1, count)

    def _hints(self, table: str) -> dict[str, list[bytes]]:
        """Return the streams of small complete stages from which hints are made."""
        wanted = [
            stage
            for stage in self.job_run.hint_stages(table)
            if stage in self.outputs.sizes and stage not in self.outputs.failed
            and self.outputs.sizes[stage] <= _MOST_HINT_BYTES
        ]  # fmt: skip
        if not wanted:
            return {}
        streams = self._collected(wanted)
        found = {stage: [part.data for part in streams.get(stage, ())] for stage in wanted}
        return {stage: parts for stage, parts in found.items() if parts}  # else it has no columns

    def _fold(self, level: range) -> None:
        """Compute the folds of one level, those whose inputs have not failed."""
        healthy = []
        for address in level:
            task = self.routes.tasks[address]
            why = first_failure(self.routes.inputs(task), self.outputs.failed)
            if why is not None:
                self.outputs.failed.setdefault(task.name, why)
            else:
                healthy.append(address)
        if not healthy:
            return
        frame = self.side.keep(self._grouped(healthy))
        folds = frozenset(self.routes.tasks[address].name for address in healthy)
        self.frames.append((folds, frame))
        heads = self._heads(frame)
        for address in healthy:
            task = self.routes.tasks[address]
            found, _ = outputs.decode_fold(of_bytes(heads[task.name, task.number]), task.name)
            self.outputs.note_folded(found)

    def _grouped(self, addresses: Sequence[int]) -> Any:
        """Return the outputs of these tasks as a frame that is not computed yet."""
        seeds = self.side.session.range(min(addresses), max(addresses) + 1, 1, 1).selectExpr(
            "CAST(id AS INT) AS task", "'' AS stage", "0 AS slice", "CAST(0 AS BIGINT) AS number",
            "0 AS part", "CAST('' AS BINARY) AS payload",
        )  # fmt: skip
        stages = {name for one in addresses for name in self.routes.inputs(self.routes.tasks[one])}
        listed = ", ".join(map(str, addresses))
        rows = _union([*self._addressed(stages), seeds]).where(f"task IN ({listed})")
        spread = rows.repartition(min(len(addresses), 4 * self.side.parallelism), "task")
        function = self.code.task("fold_rows", self.work)
        return spread.groupBy("task").applyInArrow(function, SPARK_SCHEMA)

    def _addressed(self, stages: Iterable[str]) -> list[Any]:
        """Return the rows of these stages, once for each reader."""
        return [
            frame.selectExpr("explode(readers) AS task", *_ADDRESSED)
            for frame in self._rows_of(stages)
        ]

    def _rows_of(self, stages: Iterable[str]) -> list[Any]:
        """Return the frames that hold these stages, without other rows."""
        wanted = frozenset(stages)
        return [
            frame.where(f"slice >= 0 AND stage IN ({_listed(held & wanted)})")
            for held, frame in self.frames
            if held & wanted
        ]

    def _finish(self) -> tuple[dict[str, Result], dict[str, QueryError]]:
        """Answer every query."""
        failures: dict[str, QueryError] = {}
        here, there = [], []
        for address in self.routes.finishes:
            stages = self.routes.inputs(self.routes.tasks[address])
            why = first_failure(stages, self.outputs.failed)
            if why is not None:
                failures[self.routes.tasks[address].name] = QueryError(why)
            elif self.outputs.size(stages) <= _MOST_FINISH_BYTES:
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
        heads = self._heads(self._grouped(addresses))
        seconds = time.perf_counter() - began
        names = [self.routes.tasks[address].name for address in addresses]
        return {name: (heads[name, 0], seconds) for name in names}

    def _finished_here(self, addresses: Sequence[int]) -> dict[str, tuple[bytes, float]]:
        """Finish in this process, from the collected rows of all these queries."""
        tasks = [self.routes.tasks[address] for address in addresses]
        stages = {stage for task in tasks for stage in self.routes.inputs(task)}
        streams = self._collected(stages)
        with_steps = Steps(StepSettings(self.limits, open_sandbox=self._sandbox))
        try:
            return {task.name: self._finished(with_steps, task, streams) for task in tasks}
        finally:
            with_steps.close()

    def _finished(self, with_steps: Steps, task: Task, streams: Inputs) -> tuple[bytes, float]:
        began = time.perf_counter()
        inputs = {stage: streams.get(stage, ()) for stage in self.routes.inputs(task)}
        try:
            data = with_steps.run(self.job_run.job, task, inputs, alone=True)
        except QueryError as error:
            whose = outputs.Whose(self.job_run.job.id, self.job_run.job.run, task.name)
            data = outputs.encode_failed_result(whose, "", str(error))
        return data, time.perf_counter() - began

    def _sandbox(self, limits: SandboxLimits, register: Any, types: Any) -> Sandbox:
        if self.measured is None:
            return Sandbox(limits, register, types)
        return MeasuredSandbox(limits, register, types, self.measured)

    def _heads(self, frame: Any, told: Any = lambda _: None) -> dict[tuple[str, int], bytes]:
        """Compute a frame; return what it has for the driver, by stage and number. Raise its first
        error."""
        chosen = frame.where(f"slice = {FOR_DRIVER}").select(*_ADDRESSED)
        rows: pa.Table = self.side.run(chosen.toArrow, told)
        with contextlib.closing(TaskRows(self.folder)) as found:
            found.add(rows)
            streams = found.numbered()
        heads = {}
        for (stage, number), data in streams.items():
            if stage == ERROR:
                raise _error(data)
            if stage == PROFILE and self.measured is not None:
                measured = msgspec.json.decode(data, type=dict[str, tuple[int, int, int, float]])
                self.measured.add_drained(measured)
            heads[stage, number] = data
        return heads

    def _collected(self, stages: Iterable[str]) -> Inputs:
        """Return these stages as streams, in their order."""
        frames = [frame.select(*_ADDRESSED) for frame in self._rows_of(stages)]
        if not frames:
            return {}
        rows = self._closing.enter_context(contextlib.closing(TaskRows(self.folder)))
        rows.add(self.side.run(_union(frames).toArrow))
        return rows.streams()


def _union(frames: Sequence[Any]) -> Any:
    return reduce(lambda one, two: one.unionAll(two), frames)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names))


def _error(data: bytes) -> CaudalError:
    """Return an error that a task met, with its type."""
    name, message = msgspec.json.decode(data, type=tuple[str, str])
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, CaudalError):
        return kind(message)
    return SparkFailedError(message)
