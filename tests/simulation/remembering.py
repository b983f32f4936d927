"""The engine of the simulation: real plans, outputs and answers, each computed once per process.

A seed decides what happens, never what a task computes; so whatever has the same inputs is taken
from memory. What is remembered is bounded, and forgetting changes nothing but the time.
"""

import tempfile
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from caudal.embedded.engine import run as run_embedded
from caudal.errors import CaudalError, QueryError
from caudal.files.sources import Sources
from caudal.formats import batch as batch_format
from caudal.formats import frame, mapped, outputs
from caudal.formats.digest import digest
from caudal.formats.frame import HEAD_BYTES
from caudal.formats.job import Job, Options, Request
from caudal.formats.keys import Task
from caudal.jobs.interfaces import CondemnedError, Inputs, MayGoOn, Planned, go_on, is_suspect
from caudal.model import Application, Table
from caudal.worker.compute import LocalCompute
from tests.fuzz.check import DifferenceError, compare

DEADLY = "deadly"  # the query whose finish kills its process
STRANGE = "strange"  # the query whose finish raises what nobody foresaw
ENDLESS = "endless"  # the query whose finish has no end
SIMULATED = (DEADLY, ENDLESS)  # these fail, and no other query with them
OLD, NEW = "old", "new"  # versions of the hash
_MOST = 20_000
Tables = Mapping[str, Sequence[bytes]]  # table -> batches
Value = TypeVar("Value")


class Memory:
    """Outcomes by what they follow from: a value, or the error that it must raise."""

    def __init__(self, most: int = _MOST) -> None:
        self._known: dict[Hashable, Any] = {}
        self._most = most

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= self._most:
                self._known.clear()
            try:
                found = make()
            except CaudalError as error:
                found = error
            self._known[key] = found
        if isinstance(found, CaudalError):
            raise found.with_traceback(None)
        return found


@dataclass
class Engine:
    """What all worlds of this process share."""

    plans: Memory = field(default_factory=Memory)
    outputs: Memory = field(default_factory=Memory)
    answers: Memory = field(default_factory=Memory)
    right: Memory = field(default_factory=Memory)
    _real: LocalCompute | None = None

    @property
    def real(self) -> LocalCompute:
        if self._real is None:
            self._real = LocalCompute()
        return self._real

    def close(self) -> None:
        if self._real is not None:
            self._real.close()
            self._real = None


ENGINE = Engine()


@dataclass(frozen=True)
class Machine:
    """The process that a task is run by.

    `effect` lets others act meanwhile, and may fail: NotNowError, never the task's fault.
    `last` lets time pass, and asks whether to go on.
    `kill` ends it: what a deadly task does to whoever runs it unprotected.
    """

    effect: Callable[[Task, Callable[[], bytes]], bytes]
    kill: Callable[[], None]
    last: Callable[[Task, MayGoOn], None]  # the time that it takes; StoppedError if told to stop


class RememberedCompute:
    """Real computations, each done once; the bytes of an output differ from attempt to attempt.

    Attempts of one task may give other bytes (another version of a library, another order): so
    indexes are padded at random, which moves everything behind them. A deadly task kills its
    process, until it is a suspect: then it runs apart, and is condemned.
    """

    def __init__(
        self, chance: Random, machine: Machine, hashing: str = NEW, library: str = "1"
    ) -> None:
        self._chance = chance
        self._machine = machine
        self._hashing = hashing
        self._library = library  # another one gives the same rows

    @property
    def versions(self) -> Mapping[str, str]:
        return {"hash": self._hashing, "duckdb": self._library}

    def plan(self, request: Request, moment: float) -> Planned:
        tables = request.dataset.tables if request.dataset else ()
        asked = request.application, request.queries, request.parameters, tables
        return ENGINE.plans.get(
            msgspec.json.encode(asked), lambda: ENGINE.real.plan(request, moment)
        )

    def run(
        self, job: Job, task: Task, inputs: Inputs, deliveries: int, beat: MayGoOn = go_on
    ) -> bytes:
        self._machine.last(task, beat)
        return self._machine.effect(task, lambda: self._run(job, task, inputs, deliveries))

    def _run(self, job: Job, task: Task, inputs: Inputs, deliveries: int) -> bytes:
        if task.kind == "finish" and task.name == DEADLY:
            if not is_suspect(deliveries):
                self._machine.kill()
            raise CondemnedError("the task crashes its process (simulated)")
        if task.kind == "finish" and task.name == STRANGE:
            raise LookupError("nobody foresaw this (simulated)")
        content = tuple(
            (name, tuple((part.data, part.file, part.repaired) for part in inputs[name]))
            for name in sorted(inputs)
        )
        # Read again as a computation does, whether its output is remembered or not: else a seed
        # would not be repeatable.
        read = {name: list(parts) for name, parts in inputs.items()}
        key = bytes(job.plan), _without_times(job.request.options), task, content
        made = ENGINE.outputs.get(key, lambda: ENGINE.real.run(job, task, read, 1))
        if task.kind == "map" and self._hashing == OLD:
            made = turned(made)
        if task.kind == "finish":
            made = _renamed(made, job)
        return padded(made, self._chance.randrange(4))


def turned(data: bytes) -> bytes:
    """A map output of another hash: every row lies in the next slice. Right, unless it is mixed."""
    found = mapped.open_bytes(data)
    index = found.index
    stages = {
        name: [
            found.slice(name, (number + 1) % len(one.slices)) for number in range(len(one.slices))
        ]
        for name, one in index.stages.items()
    }
    return mapped.encode(
        table=index.table,
        batch=index.batch,
        file=index.file,
        rows=index.rows,
        repaired=index.repaired,
        rejects=mapped.reject_rows(found.rejects()),
        stages=stages,
        source_bytes=index.source_bytes,
        source_digest=index.source_digest,
        failed=index.failed,
    )


def _without_times(options: Options) -> bytes:
    """What of the options a computation may depend on."""
    plain = msgspec.structs.replace(options, group=1, silent_seconds=1.0, keep_seconds=1.0)
    return msgspec.json.encode(plain)


def _renamed(result: bytes, job: Job) -> bytes:
    """The same result as one of another job: whose it is does not change its rows."""
    head = frame.read_head(frame.of_bytes(result), outputs.RESULT_MAGIC, "a result")
    mine = msgspec.structs.replace(_described(result), job=job.id, run=job.run)
    return frame.encode(outputs.RESULT_MAGIC, mine) + result[len(head) :]


def _described(result: bytes) -> outputs.ResultHeader:
    head = frame.read_head(frame.of_bytes(result), outputs.RESULT_MAGIC, "a result")
    return outputs.describe_result(head, "a result")


def padded(data: bytes, spaces: int) -> bytes:
    """The same object with blanks behind its index."""
    if not spaces:
        return data
    length = int.from_bytes(data[8:12], "little")
    text = data[HEAD_BYTES : HEAD_BYTES + length] + b" " * spaces
    head = data[:8] + len(text).to_bytes(4, "little") + digest(text).encode()
    return head + text + data[HEAD_BYTES + length :]


@dataclass(frozen=True)
class Asked:
    """What a job asks, and the data that it is mostly asked of."""

    app: Application
    data: Tables
    parameters: Mapping[str, Any] = field(default_factory=dict)
    queries: tuple[str, ...] = ()  # none: all of the application's
    unordered: frozenset[str] = frozenset()  # queries whose rows come in no order
    exact: bool = True  # to the last bit; else sums of floats may differ in theirs

    def expected(self, query: str, batches: Tables) -> pa.Table:
        """What a query must answer over these batches, by the embedded engine.

        Tables that are not given are none of the query's: they are as in `data`, so that one run
        of the engine gives the answers of many queries.
        """
        whole = {**self.data, **batches}
        key = self._key(whole)
        try:
            return ENGINE.answers.get(key, lambda: self.embedded(self._names(), whole))[query]
        except CaudalError:  # of another query, perhaps
            return ENGINE.answers.get((*key, query), lambda: self.embedded([query], whole))[query]

    def difference(self, query: str, batches: Tables, result: bytes) -> str | None:
        """How a result is wrong, if it is."""
        index = _described(result)
        if query in SIMULATED:
            return None if index.error.endswith("(simulated)") else "it did not fail"
        key = *self._key({**self.data, **batches}), query, index.rows.digest, index.error
        return ENGINE.right.get(key, lambda: self._compared(query, batches, result)) or None

    def failure(self, query: str, batches: Tables) -> str:
        """Why a query must fail, by the embedded engine; empty if it must not."""
        try:
            self.expected(query, batches)
        except QueryError as error:
            return str(error)
        return ""

    def _compared(self, query: str, batches: Tables, result: bytes) -> str:
        """The difference in words, empty if there is none."""
        error, wanted_error = _described(result).error, self.failure(query, batches)
        if error or wanted_error:
            own = error.startswith(f"{query}.sql: ") and wanted_error.startswith(f"{query}.sql: ")
            return "" if own else f"{error or 'rows'}, not {wanted_error or 'rows'}"
        _, rows = outputs.decode_result(result, query)
        wanted = self.expected(query, batches)
        if self.exact:
            return "" if rows.equals(wanted) else f"{_shown(rows)}, not {_shown(wanted)}"
        try:
            compare(wanted, rows, ordered=query not in self.unordered)
        except DifferenceError as error:
            return "; ".join(str(error).splitlines())
        return ""

    def _names(self) -> Sequence[str]:
        return self.queries or [query.name for query in self.app.queries]

    def _key(self, batches: Tables) -> tuple[Hashable, ...]:
        sent = tuple((table, tuple(batches[table])) for table in sorted(batches))
        return self.app.name, self.queries, tuple(sorted(self.parameters.items())), sent

    def embedded(self, queries: Sequence[str], batches: Tables) -> dict[str, pa.Table]:
        """The rows of the embedded engine, computed now."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for table in self.app.tables:
                write_table(folder / table.files[0], table, batches.get(table.name, ()))
            found = run_embedded(self.app, Sources(folder), queries, dict(self.parameters))
            return {query: found[query].table for query in queries}


def write_table(path: Path, table: Table, batches: Sequence[bytes]) -> None:
    header, records = table.columns, b""
    for one in batches:
        index, data = batch_format.decode(one, "")
        header, records = index.columns, records + data
    path.write_bytes(",".join(f'"{name}"' for name in header).encode() + b"\n" + records)


def _shown(rows: pa.Table) -> str:
    return str(rows.slice(0, 5).to_pylist())
