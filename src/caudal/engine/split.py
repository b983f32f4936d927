"""The split engine: the plan that a cluster runs, executed in this process.

Three kinds of step, each a function of immutable inputs:
1. map: one batch is read, cleaned and passed through every scan of its table; the slices become
   one mapped object (formats/mapped.py), together with the batch's rejected rows.
2. fold: one partition of one fold reads its slices, in the order of batches, and computes.
3. finish: one query gathers what is left and answers.

Workers are threads, each with a DuckDB of its own that runs one thread; what a step answers never
depends on which worker ran it, or when.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb
import pyarrow as pa

from caudal.answers import Answers, Result, TableProfile
from caudal.engine import stages
from caudal.engine.catalog import choose_queries
from caudal.engine.cleaning import Cleaned, note_rejects
from caudal.engine.functions import register_functions
from caudal.engine.mapping import map_piece
from caudal.engine.reading import Piece, pieces
from caudal.engine.running import (
    Progress,
    ReadingProfile,
    RunOptions,
    Silent,
    Sources,
    in_order,
)
from caudal.engine.sandbox import Limits, Sandbox, Types
from caudal.engine.split_plan import SplitPlan, TableMap, make_plan
from caudal.errors import QueryError
from caudal.formats import mapped
from caudal.kernels.hashing import partition_of
from caudal.kernels.sentiment import SentimentModel, load_model
from caudal.model import Application, ParameterValue, Query
from caudal.rejects import Rejects
from caudal.sql.planner import Finish, Fold, explain

__all__ = ["explain_plan", "make_plan", "run"]

_WORKER_MEMORY_BYTES = 2 << 30


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
    split = make_plan(app, queries, parameters or {}, model)
    files = {one.table.name: sources.files(one.table) for one in split.maps}
    rejects = Rejects(options.reject_sink)
    with (
        _Workers(model, options) as workers,
        ThreadPoolExecutor(options.threads, thread_name_prefix="caudal") as pool,
    ):
        running = _Running(split, workers, pool, options)
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
    return Answers(results, rejects, tables, (), time.perf_counter() - began)


class _Workers:
    """A contained DuckDB for every thread that asks for one."""

    def __init__(self, model: SentimentModel, options: RunOptions) -> None:
        self._register: Callable[[duckdb.DuckDBPyConnection], None] = lambda connection: (
            register_functions(connection, model)
        )
        share = (options.memory_limit or 2 * _WORKER_MEMORY_BYTES) // (options.threads + 1)
        self._limits = Limits(memory_bytes=share)
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
            mine[types] = Sandbox(self._limits, self._register, types)
            self._all.append(mine[types])
        return mine[types]


@dataclass
class _Running:
    split: SplitPlan
    workers: _Workers
    pool: ThreadPoolExecutor
    options: RunOptions
    objects: dict[str, list[bytes]] = field(default_factory=dict)  # table -> mapped objects
    folded: dict[str, list[stages.Slices]] = field(default_factory=dict)  # fold -> partitions

    @property
    def hashing(self) -> stages.Hashing:
        return stages.Hashing(self.options.partitions, partition_of)

    def map_table(
        self, one: TableMap, files: Sequence[Path], rejects: Rejects, progress: Progress
    ) -> TableProfile:
        """Every batch of a table, in parallel."""
        profile = ReadingProfile(one.table.name, files, progress)
        cut = (
            piece
            for path in files
            for piece in pieces(path, one.cleaning.wanted, batch_bytes=self.options.batch_bytes)
        )
        works = self._works(one)
        objects = self.objects.setdefault(one.table.name, [])
        for data, cleaned in in_order(
            self.pool,
            lambda numbered: self._map(one, works, *numbered),
            enumerate(cut),
            ahead=self.options.threads + 1,
        ):
            note_rejects(rejects, cleaned, one.table, strict=self.options.strict)
            objects.append(data)
            profile.note(cleaned)
        return replace(profile.finished(), mapped_bytes=sum(map(len, objects)))

    def _works(self, one: TableMap) -> list[stages.Work]:
        """The scans of a table, with hints from the tables that were mapped before."""
        complete = [scan.name for scan in self.split.plan.scans if scan.table in self.objects]
        hints = self.split.plan.usable_hints(complete) if self.options.hints else {}
        sandbox = self.workers.sandbox()
        return [
            stages.with_hint(scan, hints.get(scan.name), self._whole, sandbox) for scan in one.scans
        ]

    def _map(
        self, one: TableMap, works: Sequence[stages.Work], number: int, piece: Piece
    ) -> tuple[bytes, Cleaned]:
        return map_piece(one, works, number, piece, self.hashing, self.workers.sandbox())

    def answer(self, progress: Progress) -> dict[str, Result]:
        """Folds in the order of the plan, then every query."""
        for fold in self.split.plan.folds:
            count = self.options.partitions if fold.partitions == "all" else 1
            work = self._fold_work(fold, count)
            self.folded[fold.name] = list(self.pool.map(work, range(count)))
        results = {}
        for result in self.pool.map(self._finish, self.split.queries):
            results[result.name] = result
            progress.query(result.name, result.seconds)
        return results

    def _fold_work(self, fold: Fold, count: int) -> Callable[[int], stages.Slices]:
        def work(partition: int) -> stages.Slices:
            inputs = {
                name: self._slice(name, partition) if count > 1 else self._whole(name)
                for name in fold.inputs
            }
            return stages.fold(fold, partition, inputs, self.hashing, self.workers.sandbox())

        return work

    def _finish(self, query: Query) -> Result:
        began = time.perf_counter()
        finish: Finish = self.split.plan.finish(query.name)
        inputs = {name: self._whole(name) for name in finish.inputs.values()}
        try:
            table = stages.finish(finish, inputs, self.workers.sandbox(Types.PLAIN))
        except QueryError as error:
            raise QueryError(f"{query.origin}: {error}") from None
        named = table.rename_columns(list(self.split.names[query.name]))
        return Result(query.name, query.title, named, time.perf_counter() - began)

    def _slice(self, stage: str, number: int) -> pa.Table:
        """Slice `number` of a cut output; the whole of a gathered one."""
        return pa.concat_tables(
            slices[min(number, len(slices) - 1)] for slices in self._outputs(stage, number)
        )

    def _whole(self, stage: str) -> pa.Table:
        return pa.concat_tables(part for slices in self._outputs(stage) for part in slices)

    def _outputs(self, stage: str, only: int | None = None) -> list[stages.Slices]:
        """The slices of a stage: per batch of a scan, per partition of a fold."""
        if stage in self.folded:
            return self.folded[stage]
        scan = next(scan for scan in self.split.plan.scans if scan.name == stage)
        return [_read_slices(data, stage, only) for data in self.objects[scan.table]]


def _read_slices(data: bytes, stage: str, only: int | None) -> stages.Slices:
    reader = mapped.open_bytes(data)
    count = len(reader.index.stages[stage].slices)
    wanted = range(count) if only is None else [min(only, count - 1)]
    return [reader.slice(stage, number) for number in wanted]
