"""The split engine: the plan that a cluster runs, executed in this process.

Three kinds of step, each a function of immutable inputs:
1. map: one batch is read, cleaned and passed through every scan of its table; the slices become
   one mapped object (formats/mapped.py), together with the batch's rejected rows.
2. fold: one partition of one fold reads its slices, in the order of batches, and computes.
3. finish: one query gathers what is left and answers.

Workers are threads, each with a DuckDB of its own that runs one thread; what a step answers never
depends on which worker ran it, or when. Outputs are kept in files (kept.py), DuckDB spills, and
the process as a whole is bounded (containment.py): by the memory limit, or by what is free.
"""

import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from caudal.duck import stages
from caudal.duck.bind import choose_queries
from caudal.duck.clean import note_rejects
from caudal.duck.containment import available_bytes, memory_bound
from caudal.duck.database import Connection
from caudal.duck.functions import register_functions
from caudal.duck.job_plan import make_plan
from caudal.duck.profile import MeasuredSandbox, Measurements, profile_stages
from caudal.duck.sandbox import Sandbox, SandboxLimits, Types
from caudal.duck.steps import TableWork, map_piece, table_work
from caudal.embedded.read_progress import ReadingProfile
from caudal.errors import MemoryExceededError, QueryError, UsageError
from caudal.files.ordered import in_order
from caudal.files.pieces import Cleaned, FilePiece, pieces
from caudal.files.sources import Sources
from caudal.formats import outputs
from caudal.jobs.plan import JobPlan, TableMap
from caudal.kernels.hashing import partition_of
from caudal.kernels.sentiment import SentimentModel, load_model
from caudal.local.kept import Kept
from caudal.model import Application, ParameterValue, Query
from caudal.results.answers import Answers, Result, TableProfile
from caudal.results.failures import Failures, settled
from caudal.results.rejects import Rejects
from caudal.run_options import Progress, RunOptions, Silent
from caudal.sizes import told_bytes
from caudal.sql.planner import Finish, Fold, Scan, explain

__all__ = ["explain_plan", "make_plan", "run"]

_WORKER_MEMORY_BYTES = 2 << 30
# With a memory limit: what a process holds besides its sandboxes (the interpreter with its
# libraries, pieces in flight), and the least with which a sandbox answers anything of size.
_PROCESS_BYTES = 256 << 20
_LEAST_WORKER_BYTES = 64 << 20


def explain_plan(
    app: Application, query: str, parameters: Mapping[str, ParameterValue], *, sql: bool
) -> str:
    """The plan of one query as text, among all queries of its application, so that what they
    share shows."""
    choose_queries(app, [query])
    split = make_plan(app, None, parameters, load_model(app.sentiment))
    title = next(one.title for one in split.queries if one.name == query)
    return f"{app.name} {query}: {title}\nengine: split\n\n{explain(split.plan, query, sql=sql)}"


def run(
    app: Application,
    sources: Sources,
    queries: Sequence[str] | None = None,
    parameters: Mapping[str, ParameterValue] | None = None,
    options: RunOptions | None = None,
    progress: Progress | None = None,
) -> Answers:
    """Answer the chosen queries by scan, fold and finish; the same rows as the embedded engine."""
    options, progress = options or RunOptions(), progress or Silent()
    began = time.perf_counter()
    model = load_model(options.sentiment or app.sentiment)
    moment = datetime.now(UTC)

    def answered(names: Sequence[str] | None, options: RunOptions) -> tuple[Answers, Failures]:
        split = make_plan(app, names, parameters or {}, model, moment)
        return _run(split, sources, model, options, progress)

    answers, failures = answered(queries, options)
    results = dict(answers.results)
    for name in sorted(failures.together):  # rule 3 of failures.py
        again, alone = answered([name], replace(options, reject_sink=None))
        results |= again.results
        failures.errors |= alone.errors
    errors = {name: why for name, why in failures.errors.items() if name not in results}
    asked = [query.name for query in choose_queries(app, queries)]
    return replace(
        answers,
        results={name: results[name] for name in asked if name in results},
        failures=settled(results, errors),
        seconds=time.perf_counter() - began,
    )


def _run(
    split: JobPlan,
    sources: Sources,
    model: SentimentModel,
    options: RunOptions,
    progress: Progress,
) -> tuple[Answers, Failures]:
    """One pass over the files."""
    files = {one.table.name: sources.files(one.table) for one in split.maps}
    rejects = Rejects(options.reject_sink)
    scans = {scan.name: scan.table for scan in split.plan.scans}
    with (
        memory_bound(options.memory_limit or available_bytes()),
        tempfile.TemporaryDirectory(prefix="caudal-") as folder,
        _Workers(model, options, Path(folder)) as workers,
        ThreadPoolExecutor(options.threads, thread_name_prefix="caudal") as pool,
    ):
        kept = Kept(Path(folder), scans, is_limited=options.memory_limit is not None)
        running = _Running(split, workers, pool, options, kept)
        try:
            tables = tuple(
                running.map_table(one, files[one.table.name], rejects, progress)
                for one in split.maps
            )
            results = running.answer(progress)
        except BaseException:  # a step failed, or Ctrl-C: what others still do is in vain
            pool.shutdown(wait=False, cancel_futures=True)
            workers.interrupt()
            raise
    operators = profile_stages(split.plan, workers.measured) if workers.measured else ()
    answers = Answers(results, rejects, tables, operators, failures=running.failures.errors)
    return answers, running.failures


def worker_limits(options: RunOptions) -> SandboxLimits:
    """What each worker of a run may use."""
    share = (options.memory_limit or 2 * _WORKER_MEMORY_BYTES) // (options.threads + 1)
    return SandboxLimits(memory_bytes=share, trusted=True)


class _Workers:
    """A contained DuckDB for every thread that asks for one."""

    def __init__(self, model: SentimentModel, options: RunOptions, folder: Path) -> None:
        self._register: Callable[[Connection], None] = lambda connection: register_functions(
            connection, model
        )
        self._limits = SandboxLimits(
            memory_bytes=_share(options), spill=folder / "spilled", trusted=True
        )
        self.measured = Measurements() if options.profile else None
        self._mine = threading.local()
        self._all: list[Sandbox] = []

    def __enter__(self) -> "_Workers":
        return self

    def __exit__(self, *_: object) -> None:
        for sandbox in self._all:
            sandbox.close()

    def interrupt(self) -> None:
        """End what every worker is doing: a step failed, or Ctrl-C."""
        for sandbox in list(self._all):
            sandbox.interrupt()

    def sandbox(self, types: Types = Types.LOSSLESS) -> Sandbox:
        mine: dict[Types, Sandbox] = self._mine.__dict__.setdefault("sandboxes", {})
        if types not in mine:
            mine[types] = (
                MeasuredSandbox(self._limits, self._register, types, self.measured)
                if self.measured is not None
                else Sandbox(self._limits, self._register, types)
            )
            self._all.append(mine[types])
        return mine[types]


def _share(options: RunOptions) -> int:
    """The memory of one sandbox; every worker has one, and one more answers."""
    workers = options.threads + 1
    if options.memory_limit is None:
        return 2 * _WORKER_MEMORY_BYTES // workers
    least = _PROCESS_BYTES + workers * _LEAST_WORKER_BYTES
    if options.memory_limit < least:
        raise UsageError(
            f"a memory limit of {told_bytes(options.memory_limit)} is too small for the split "
            f"engine with {options.threads} threads: give at least {-(-least // 1_000_000)}MB"
        )
    return (options.memory_limit - _PROCESS_BYTES) // workers


@dataclass
class _Running:
    split: JobPlan
    workers: _Workers
    pool: ThreadPoolExecutor
    options: RunOptions
    kept: Kept
    failures: Failures = field(default_factory=Failures)

    @property
    def hashing(self) -> stages.Hashing:
        return stages.Hashing(self.options.partitions, partition_of)

    def map_table(
        self, one: TableMap, files: Sequence[Path], rejects: Rejects, progress: Progress
    ) -> TableProfile:
        """Every batch of a table, in parallel."""
        profile = ReadingProfile(one.table.name, files, progress)
        work = self._work(one)
        cut = (
            piece
            for path in files
            for piece in pieces(path, work.cleaning.wanted, batch_bytes=self.options.batch_bytes)
        )
        self.kept.keep_table(one.table.name)
        mapped_bytes = 0
        for data, cleaned in in_order(
            self.pool,
            lambda numbered: self._map(work, *numbered),
            enumerate(cut),
            ahead=self.options.threads + 1,
        ):
            note_rejects(rejects, cleaned, one.table, strict=self.options.strict)
            self.kept.keep_mapped(one.table.name, data)
            mapped_bytes += len(data)
            profile.note(cleaned)
        return replace(profile.finished(), mapped_bytes=mapped_bytes)

    def _work(self, one: TableMap) -> TableWork:
        """The scans of a table, with hints from the tables that were mapped before."""
        complete = [
            scan.name
            for scan in self.split.plan.scans
            if self.kept.has_table(scan.table) and self._is_whole(scan)
        ]
        hints = self.split.plan.usable_hints(complete) if self.options.hints else {}
        sandbox = self.workers.sandbox()
        works = [
            stages.with_hint(scan, hints.get(scan.name), self.kept.whole, sandbox)
            for scan in one.scans
        ]
        return table_work(one, works)

    def _map(self, work: TableWork, number: int, piece: FilePiece) -> tuple[bytes, Cleaned]:
        sandbox = self.workers.sandbox()
        return map_piece(
            work, number, piece, self.hashing, sandbox, split=self.split, failures=self.failures
        )

    def _is_whole(self, stage: Scan | Fold) -> bool:
        """Whether a stage's output is there, if it is complete: somebody waited for all of it."""
        failed = stage.name in self.failures.steps
        return not failed and not self.failures.concern_all(stage.queries)

    def answer(self, progress: Progress) -> dict[str, Result]:
        """Folds in the order of the plan, then every query."""
        for fold in self.split.plan.folds:
            if self.failures.concern_all(fold.queries):
                continue
            count = self.options.partitions if fold.partitions == "all" else 1
            work = self._fold_work(fold, count)
            with self.failures.of(fold.queries, fold.name):
                for data in in_order(self.pool, work, range(count), ahead=self.options.threads):
                    self.kept.keep_folded(fold.name, data)
        waiting = [one for one in self.split.queries if one.name not in self.failures.errors]
        running = [(query, self.pool.submit(self._finish, query)) for query in waiting]
        results: dict[str, Result] = {}
        again = []
        for query, future in running:
            try:
                results[query.name] = future.result()
            except MemoryExceededError:
                again.append(query)
            except QueryError as error:
                self.failures.note([query.name], error)
        for query in again:  # alone: memory may have been short because of another query
            with self.failures.of([query.name]):
                results[query.name] = self.pool.submit(self._finish, query).result()
        for result in results.values():
            progress.query(result.name, result.seconds)
        return {one.name: results[one.name] for one in self.split.queries if one.name in results}

    def _fold_work(self, fold: Fold, count: int) -> Callable[[int], bytes]:
        def work(partition: int) -> bytes:
            inputs = {
                name: self.kept.slice(name, partition) if count > 1 else self.kept.whole(name)
                for name in fold.inputs
            }
            with self.split.naming(fold.queries):
                slices = stages.fold(fold, partition, inputs, self.hashing, self.workers.sandbox())
            return outputs.encode_fold(fold.name, partition, slices)

        return work

    def _finish(self, query: Query) -> Result:
        began = time.perf_counter()
        finish: Finish = self.split.plan.finish(query.name)
        inputs = {name: self.kept.whole(name) for name in finish.inputs.values()}
        with self.split.naming([query.name]):
            table = stages.finish(finish, inputs, self.workers.sandbox(Types.PLAIN))
        named = table.rename_columns(list(self.split.names[query.name]))
        return Result(query.name, query.title, named, time.perf_counter() - began)
