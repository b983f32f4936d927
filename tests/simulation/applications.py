"""Applications and data for the simulation, and what their queries must answer.

Planning, computing and the expected answers are real, and remembered: a seed decides what happens,
never what a fragment computes.
"""

import atexit
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import msgspec
import pyarrow as pa

from caudal.application import find_application
from caudal.core.tasks import Task
from caudal.engine.embedded import run as run_embedded
from caudal.engine.running import Sources
from caudal.errors import CaudalError
from caudal.formats import batch as batch_format
from caudal.formats.digest import digest
from caudal.formats.frame import HEAD_BYTES
from caudal.formats.job import Job, Request
from caudal.model import Application, Query, Table
from caudal.tasks.compute import LocalCompute
from caudal.tasks.cutting import cut_files
from caudal.tasks.ports import Inputs, Planned

_TABLES = (
    Table(
        "t",
        ("t.csv",),
        ("k", "v"),
        "SELECT k, to_integer(v) AS v, CASE WHEN to_integer(v) IS NULL THEN 'v is no number' END "
        "AS reject FROM raw",
        "t.sql",
    ),
    Table("u", ("u.csv",), ("k", "w"), "SELECT k, to_integer(w) AS w FROM raw", "u.sql"),
)
_QUERIES = {
    "some": "SELECT k, v FROM t WHERE v % 3 = 0 ORDER BY k, v",
    "sums": "SELECT k, sum(v) AS total, count(*) AS n FROM t GROUP BY k ORDER BY k",
    "joined": "SELECT t.k, sum(v * w) AS total FROM t JOIN u ON t.k = u.k GROUP BY t.k ORDER BY 1",
    "best": "SELECT k, w FROM u ORDER BY w DESC, k LIMIT 3",
    "constant": "SELECT 42 AS answer",
}
_CHOSEN: tuple[tuple[str, ...], ...] = (  # few, since every set is planned and computed apart
    (),
    ("some", "constant"),
    ("sums", "joined"),
    ("best",),
)
LITTLE = Application(
    "little",
    "Two tables",
    Path(),
    _TABLES,
    tuple(Query(name, name, sql, f"{name}.sql") for name, sql in _QUERIES.items()),
)
POISON = Application(
    "poison",
    "A query that fails while it runs",
    Path(),
    _TABLES,
    (Query("bad", "bad", "SELECT CAST(k AS INTEGER) AS n FROM t ORDER BY n", "bad.sql"),),
)
BOOKS = find_application("books")
_CASES = ("top_decile_ties", "books_and_reviews_apart", "empty_tables")

Tables = Mapping[str, Sequence[bytes]]  # table -> batches


@cache
def little_data(variant: int, batch_bytes: int) -> Tables:
    """Random rows, the same for the same variant."""
    chance = Random(variant)
    t = [f"{chance.choice('abcdefg')},{chance.randrange(50)}" for _ in range(6 + 9 * variant)]
    if variant % 2:
        t.insert(3, "a,none")
    u = [f"{chance.choice('abcdefg')},{chance.randrange(9)}" for _ in range(4 * variant)]
    return {
        "t": _cut("t", "\n".join(["k,v", *t]) + "\n", batch_bytes),
        "u": _cut("u", "\n".join(["k,w", *u]) + "\n", batch_bytes) if variant else (),
    }


@cache
def books_data(case: str, batch_bytes: int) -> Tables:
    folder = BOOKS.folder / "cases" / case
    return {
        table.name: _cut(table.name, (folder / table.files[0]).read_text(), batch_bytes)
        for table in BOOKS.tables
    }


def _cut(table: str, text: str, batch_bytes: int) -> tuple[bytes, ...]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{table}.csv"
        path.write_text(text)
        cuts = [batch_format.decode(one, "") for one in cut_files(table, [path], batch_bytes)]
    return tuple(
        batch_format.encode(
            table=table,
            number=index.number,
            file=f"{table}.csv",
            columns=index.columns,
            first_line=index.first_line,
            offset=index.offset,
            newlines=index.newlines,
            data=records,
        )
        for index, records in cuts
    )


@dataclass(frozen=True)
class Choice:
    """An application with two versions of its data."""

    app: Application
    queries: tuple[str, ...]
    data: Tables
    other: Tables
    fails: bool = False


def choose(chance: Random) -> Choice:
    kind = chance.random()
    if kind < 0.15:
        one, other = (books_data(case, 500) for case in chance.sample(_CASES, 2))
        return Choice(BOOKS, (), one, other)
    if kind < 0.22:
        return Choice(POISON, (), little_data(1, 30), little_data(2, 30), fails=True)
    size = chance.choice((15, 40))
    names = chance.choice(_CHOSEN)
    one, other = (little_data(variant, size) for variant in chance.sample(range(4), 2))
    return Choice(LITTLE, names, one, other)


_answers: dict[Any, pa.Table] = {}


def expected(request: Request, query: str, batches: Tables) -> pa.Table:
    """What a query must answer over these batches, by the embedded engine."""
    app = {"little": LITTLE, "poison": POISON, "books": BOOKS}[request.application.name]
    digests = tuple((table, digest(b"".join(batches[table]))) for table in sorted(batches))
    key = app.name, query, digests
    if key not in _answers:
        with tempfile.TemporaryDirectory() as folder:
            for table in app.tables:
                _write(Path(folder) / table.files[0], table, batches.get(table.name, ()))
            _answers[key] = run_embedded(app, Sources(Path(folder)), [query])[query].table
    return _answers[key]


def _write(path: Path, table: Table, batches: Sequence[bytes]) -> None:
    header, records = table.columns, b""
    for one in batches:
        index, data = batch_format.decode(one, "")
        header, records = index.columns, records + data
    path.write_bytes(",".join(f'"{name}"' for name in header).encode() + b"\n" + records)


class RememberedCompute:
    """Real computations, each done once; the bytes of an output differ from attempt to attempt.

    Attempts of one task may give other bytes (another version of a library, another order): so
    indexes are padded at random, which moves everything behind them.
    """

    _plans: ClassVar[dict[str, Planned | CaudalError]] = {}
    _outputs: ClassVar[dict[Any, bytes | CaudalError]] = {}
    _real: ClassVar[list[LocalCompute]] = []

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        if not self._real:
            self._real.append(LocalCompute())
            atexit.register(self._real[0].close)

    def plan(self, request: Request, moment: float) -> Planned:
        key = msgspec.json.encode((request.application, request.queries)).decode()
        if key not in self._plans:
            try:
                self._plans[key] = self._real[0].plan(request, moment)
            except CaudalError as error:
                self._plans[key] = error
        planned: Planned = _told(self._plans[key])
        return planned

    def run(self, job: Job, task: Task, inputs: Inputs, deliveries: int) -> bytes:
        parts = [(name, part) for name in sorted(inputs) for part in inputs[name]]
        content = tuple((name, digest(part.data), part.file, part.repaired) for name, part in parts)
        key = digest(bytes(job.plan)), job.request.options.partitions, task, content
        if key not in self._outputs:
            try:
                self._outputs[key] = self._real[0].run(job, task, inputs, deliveries)
            except CaudalError as error:
                self._outputs[key] = error
        return padded(_told(self._outputs[key]), self._chance.randrange(4))


def _told(outcome: Any) -> Any:
    if isinstance(outcome, CaudalError):
        raise outcome
    return outcome


def padded(data: bytes, spaces: int) -> bytes:
    """The same object with blanks behind its index."""
    length = int.from_bytes(data[8:12], "little")
    text = data[HEAD_BYTES : HEAD_BYTES + length] + b" " * spaces
    head = data[:8] + len(text).to_bytes(4, "little") + digest(text).encode()
    return head + text + data[HEAD_BYTES + length :]
