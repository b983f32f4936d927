"""The steps of a job computed in this process: map, fold, finish and the rejects report.

Use it from one thread at a time. Data that the tasks of a job share (the decoded plan, the keys of
hints) is kept for the few newest jobs, while it is small.
"""

import operator
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import msgspec
import pyarrow as pa

from caudal.duck import steps
from caudal.duck.functions import register_functions
from caudal.duck.load_steps import load_batch
from caudal.duck.map_files import map_files
from caudal.duck.sandbox import Register, Sandbox, SandboxLimits, Types
from caudal.errors import DataError, FormatError, RejectedRowError
from caudal.files.pieces import Cleaned
from caudal.formats import batch as batch_format
from caudal.formats import mapped, outcomes, outputs, report_records
from caudal.formats.job import Job
from caudal.formats.keys import REJECTS, Task
from caudal.jobs.interfaces import InputPart, Inputs
from caudal.jobs.plan import JobPlan, from_json
from caudal.kernels.hashing import partition_of
from caudal.kernels.sentiment import SentimentModel, load_model
from caudal.model import RejectedRow
from caudal.results.rejects import Rejects, strict_error
from caudal.sql.planner import Scan

OpenSandbox = Callable[[SandboxLimits, Register, Types], Sandbox]
Clean = Callable[
    [steps.StepContext, steps.TableWork, batch_format.BatchHeader, bytes | memoryview], Cleaned
]

_JOBS_KEPT = 8
_MOST_HINT_BYTES = 32 << 20  # of keys; a larger hint would cost more than it saves

_MOST_LINES = 500_000  # that a report names; the last batch may exceed it
_LINES_AFTERWARDS = 5  # of each reason, after so many rows
_UNREADABLE = (pa.ArrowException, UnicodeError)  # errors of a decoder: the data is wrong
_TOLD = 300  # characters of its reason


@dataclass
class _Known:
    """The shared data of the tasks of one run of a job."""

    plan: msgspec.Raw
    split: JobPlan
    hints: dict[str, "_Hinted"] = field(default_factory=dict)  # by scan
    tables: dict[str, steps.TableWork] = field(default_factory=dict)


@dataclass(frozen=True)
class _Hinted:
    """A scan with its hint, and the objects from which the hint was made."""

    made_of: tuple[Collection[InputPart], ...]
    work: steps.ScanWork

    def is_made_of(self, sources: tuple[Collection[InputPart], ...]) -> bool:
        same_length = len(self.made_of) == len(sources)
        return same_length and all(map(operator.is_, self.made_of, sources))


@dataclass(frozen=True)
class StepSettings:
    """Settings of steps. Tests replace the cleaning of rows and the sandboxes."""

    limits: SandboxLimits = field(default_factory=SandboxLimits)
    models: Mapping[str, SentimentModel] = field(default_factory=dict)  # already loaded, by name
    open_sandbox: OpenSandbox = Sandbox
    clean: Clean = steps.clean_batch


class Steps:
    """The steps, and the sandboxes in which they run."""

    def __init__(self, settings: StepSettings | None = None) -> None:
        self._settings = settings or StepSettings()
        self._sandboxes: dict[tuple[str, Types], Sandbox] = {}  # by sentiment model
        self._known: OrderedDict[str, _Known] = OrderedDict()  # by run

    def close(self) -> None:
        for sandbox in self._sandboxes.values():
            sandbox.close()

    def relieve(self) -> None:
        """Drop everything that can be made again."""
        self.close()
        self._sandboxes.clear()
        self._known.clear()

    def interrupt(self) -> None:
        """Interrupt the running step, from another thread."""
        for sandbox in list(self._sandboxes.values()):
            sandbox.interrupt()

    def run(self, job: Job, task: Task, inputs: Inputs, *, alone: bool = False) -> bytes:
        """Return the output of a map, fold or finish. With `alone`, nothing else runs in this
        process, so a lack of memory is the task's own."""
        context = self._context(job, alone=alone)
        if task.kind == "map" and job.request.dataset:
            files = [part.data for part in inputs[task.name]]
            return map_files(context, context.split.table(task.name), files)
        if task.kind == "map":
            data = self._map(job, context, task, inputs)
            if job.request.options.strict:
                _refuse_rejects(data)
            return data
        whose = outputs.Whose(job.id, job.run, task.name)
        if task.kind == "finish" and task.name == REJECTS:
            return report(context.split, inputs, whose, every=job.request.options.every_reject)
        if task.kind == "finish":
            return steps.finish_query(context, inputs, whose)
        return steps.fold_partition(context, task.name, task.number, inputs)

    def _context(self, job: Job, *, alone: bool) -> steps.StepContext:
        return steps.StepContext(
            self._open(job).split,
            steps.Hashing(job.request.options.partitions, partition_of),
            partial(self._sandbox, job.request.application.sentiment),
            self._settings.limits,
            alone,
        )

    def _map(self, job: Job, context: steps.StepContext, task: Task, inputs: Inputs) -> bytes:
        (batch,), place = inputs[task.name], f"batch {task.number} of {task.name}"
        work = self._table_work(self._known[job.run], context, task.name, inputs)
        try:
            index, records = batch_format.view(batch.data, place, batch.body)
            if (index.table, index.number) != (task.name, task.number):
                raise FormatError(f"{place} is batch {index.number} of {index.table}")
            if job.load:
                return load_batch(context, work.cleaning, job.load.load, index, records)
            cleaned = self._settings.clean(context, work, index, records)
            return steps.map_rows(context, work, index, cleaned)
        except _UNREADABLE as error:
            if isinstance(error, MemoryError):
                raise
            reason = " ".join(str(error).split())[:_TOLD]
            raise DataError(f"{place} cannot be read, send another one: {reason}") from error

    def _table_work(
        self, known: _Known, context: steps.StepContext, table: str, inputs: Inputs
    ) -> steps.TableWork:
        """Return how a table is mapped, with the hints that are there by now."""
        one = known.split.table(table)
        works = tuple(
            self._work(known, scan, inputs, inputs.keys() - {table}, context.stages)
            for scan in one.scans
        )
        work = known.tables.get(table)
        if work is None or not all(map(operator.is_, work.works, works)):
            work = known.tables[table] = steps.table_work(one, works)
        return work

    def _work(
        self,
        known: _Known,
        scan: Scan,
        inputs: Inputs,
        complete: Collection[str],
        sandbox: Sandbox,
    ) -> steps.ScanWork:
        """Return a scan, with its hint if all stages of the hint exist."""
        hint = known.split.plan.usable_hints(complete).get(scan.name)
        if hint is None:
            return steps.ScanWork(scan, {})
        sources = tuple(inputs[stage] for stage, _ in hint.sources)
        hinted = known.hints.get(scan.name)
        if hinted is None or not hinted.is_made_of(sources):
            work = steps.with_hint(scan, hint, lambda stage: _rows(inputs[stage]), sandbox)
            if sum(keys.nbytes for keys in work.beside.values()) > _MOST_HINT_BYTES:
                work = steps.ScanWork(scan, {})
            hinted = known.hints[scan.name] = _Hinted(sources, work)
        return hinted.work

    def _open(self, job: Job) -> _Known:
        known = self._known.get(job.run)
        if known is None or (known.plan is not job.plan and bytes(known.plan) != bytes(job.plan)):
            known = self._known[job.run] = _Known(job.plan, from_json(job.plan))
            if len(self._known) > _JOBS_KEPT:
                self._known.popitem(last=False)
        self._known.move_to_end(job.run)
        return known

    def _sandbox(self, name: str, types: Types) -> Sandbox:
        if (name, types) not in self._sandboxes:
            model = self._settings.models.get(name) or load_model(name)
            register = partial(register_functions, model=model)
            opened = self._settings.open_sandbox(self._settings.limits, register, types)
            self._sandboxes[name, types] = opened
        return self._sandboxes[name, types]


def _rows(parts: Iterable[InputPart]) -> pa.Table:
    return pa.concat_tables(mapped.read_rows(part.data) for part in parts)


def _refuse_rejects(data: bytes) -> None:
    """Raise for a rejected row if the job is strict; any of several rows may be named."""
    found = mapped.open_bytes(data)
    for rejected in found.rejects():
        row = RejectedRow(found.index.table, found.index.file, *rejected)
        raise RejectedRowError(f"{outcomes.STRICT}{strict_error(row)}")


def report(
    split: JobPlan,
    inputs: Inputs,
    whose: outputs.Whose,
    *,
    every: bool = False,
) -> bytes:
    """Return the rejects report as a result.

    It names the first rows of each reason, or as many rows as it may in all. Counts are exact. The
    records of the first rows are in its index.
    """
    rejects, named = Rejects(lines_kept=None) if every else Rejects(), 0
    for one in split.maps:
        for part in inputs.get(one.table.name, ()):
            found = mapped.rejections(mapped.read_rows(part.data), part.file)
            rows = (RejectedRow(one.table.name, part.file, *row) for row in found)
            rejects.add(rows, part.records)
            rejects.note_repaired(one.table.name, part.repaired)
            named += len(found)
            if every and named >= _MOST_LINES:
                rejects.lines_kept = _LINES_AFTERWARDS
    records = report_records.bounded(
        outputs.PlaceRecord(row, place, record)
        for row, one in enumerate(rejects)
        for place, record in one.records.items()
    )
    return outputs.encode_result(whose, "Rejected rows", _report_rows(rejects), records)


def _report_rows(rejects: Rejects) -> pa.Table:
    rows: list[tuple[str, str | None, int, list[dict[str, str | int]]]] = [
        (one.table, one.reason, one.count, [{"file": f, "line": n} for f, n in one.first])
        for one in rejects
    ]
    rows += [(table, None, count, []) for table, count in rejects.repaired.items()]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
    return pa.table(columns, schema=outputs.REPORT)
