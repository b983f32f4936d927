"""Answers so far: the rows of a growing query over the batches that are mapped (ADR 59).

Rules
1. Only a query that grows has one (`sql/planner/growing.py`). Over some of the batches it gives
   some of the rows of its answer, in the columns that its plan names. No other column is shown.
2. Of every table the first batches are read, up to the first one that is not mapped. So one number
   for each table says of which data the rows are, and a client knows its own (ADR 12).
3. The stages are those that workers run, each once: a fold over all rows gives the rows of all its
   partitions.
4. Nothing is stored and nothing is decided from it. What takes too much has no answer so far.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from caudal.errors import QueryError
from caudal.formats import frame, mapped, outputs
from caudal.formats.keys import Task
from caudal.formats.mapped import MappedReader
from caudal.formats.streams import PARTS
from caudal.jobs import objects
from caudal.jobs.interfaces import InputPart, UnknownNameError
from caudal.jobs.ports import Ports
from caudal.jobs.runs import JobRun, stage_of
from caudal.jobs.shared_maps import facts_of, open_mapped
from caudal.jobs.status import growing_queries, tables_of
from caudal.results.weight import weight

MOST_ROWS = 10_000
_MOST_WEIGHT = 8 << 20  # bytes of the shown rows as Python values
_MOST_INPUT_BYTES = 64 << 20  # of slices, as they are stored

Covered = Mapping[str, int]  # table -> how many of its first batches


@dataclass(frozen=True)
class RowsSoFar:
    """Some rows of an answer, in the columns that are final. `total` counts those not shown too."""

    covered: Covered
    rows: pa.Table
    total: int
    later: tuple[str, ...]  # columns that come with the answer

    @property
    def batches(self) -> int:
        """Return how many batches it is of. More batches give the same rows and more."""
        return sum(self.covered.values())


@dataclass(frozen=True)
class GrowingQuery:
    """A growing query of one run of a job."""

    ports: Ports
    job_run: JobRun
    query: str

    @classmethod
    def of(cls, ports: Ports, job_run: JobRun, query: str) -> "GrowingQuery":
        """Return a query. Raise UnknownNameError if it does not grow."""
        if query not in growing_queries(job_run):
            reason = f"query {query} has no answer so far: later rows may change any row of it"
            raise UnknownNameError("preview", reason)
        return cls(ports, job_run, query)

    def is_over(self) -> bool:
        """Return whether the query is answered, or failed."""
        result = self.job_run.keys.output(Task("finish", self.query))
        return objects.exists(self.ports.store, result)

    def covered(self, known: Covered) -> Covered:
        """Return how many batches of each table are mapped without a gap. `known` were before."""
        facts, size = facts_of(self.ports.store, self.job_run), self.job_run.shape.group

        def count(table: str) -> int:
            number, end = known.get(table, 0), facts.end(table)
            while True:
                group = number // size
                number = group * size + facts.mapped(table, group).prefix()
                if number < (group + 1) * size or (end is not None and number >= end):
                    return number if end is None else min(number, end)

        return {table: count(table) for table in tables_of(self.query, self.job_run.shape)}

    def rows(self, covered: Covered) -> RowsSoFar:
        """Return the rows that the query gives over these batches.

        Raise QueryError if a stage failed or takes too much, NotFoundError if data was deleted.
        """
        stages = _Stages(self.ports, self.job_run, covered)
        step = self.job_run.split.plan.finish(self.query)
        inputs = {name: stages.parts(name) for name in sorted(set(step.inputs.values()))}
        made = self.ports.compute.run(self.job_run.job, Task("finish", self.query), inputs, 1)
        rows = outputs.decode_result(made, f"the rows of {self.query} so far", PARTS)[1]
        later = [name for n, name in enumerate(rows.column_names) if n not in step.grows]
        shown = rows.select(list(step.grows))
        return RowsSoFar(covered, _light(shown), shown.num_rows, tuple(later))


@dataclass
class _Stages:
    """The outputs of a query's stages over some batches, each made once."""

    ports: Ports
    job_run: JobRun
    covered: Covered
    _parts: dict[str, list[InputPart]] = field(default_factory=dict)
    _readers: dict[str, list[MappedReader]] = field(default_factory=dict)
    _bytes: int = 0

    def parts(self, name: str) -> list[InputPart]:
        if name not in self._parts:
            scan = stage_of(self.job_run, name)
            found = self._folded(name) if scan is None else self._scanned(name, scan.table)
            self._parts[name] = [InputPart(one) for one in found]
        return self._parts[name]

    def _scanned(self, name: str, table: str) -> Iterator[bytes]:
        for reader in self._opened(table):
            spans = reader.index.stage(name, f"{table} {reader.index.batch}").slices
            self._bytes += sum(span.length for span in spans)
            if self._bytes > _MOST_INPUT_BYTES:
                raise QueryError("the rows so far are too many to be shown: wait for the answer")
            yield from reader.streams(name)

    def _opened(self, table: str) -> list[MappedReader]:
        if table not in self._readers:
            store, run = self.ports.store, self.job_run
            numbers = range(self.covered[table])
            self._readers[table] = [open_mapped(store, run, table, number) for number in numbers]
        return self._readers[table]

    def _folded(self, name: str) -> Iterator[bytes]:
        fold = next(one for one in self.job_run.split.plan.folds if one.name == name)
        inputs = {stage: self.parts(stage) for stage in fold.inputs}
        made = self.ports.compute.run(self.job_run.job, Task("fold", name, 0), inputs, 1)
        read = frame.of_bytes(made)
        index, body = outputs.decode_fold(read, name)
        slices = index.stage(name)
        for span in [one for one in slices.slices if one.length] or [slices.empty]:
            yield mapped.read_stream(read, body, span, name)


def _light(rows: pa.Table) -> pa.Table:
    """Return as many of the first rows as may be shown."""
    shown = rows.slice(0, MOST_ROWS)
    while shown.num_rows > 1 and _weight(shown) > _MOST_WEIGHT:
        shown = shown.slice(0, shown.num_rows // 2)
    return shown


def _weight(rows: pa.Table) -> int:
    return sum(weight(part) for column in rows.columns for part in column.chunks)
