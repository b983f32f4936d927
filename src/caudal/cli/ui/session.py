"""The SQL page's own server: SELECTs over the tables of one session, answers kept for a while.

Rules
1. One SELECT at a time: a session's database belongs to one thread. Others wait.
2. Answers are kept as Arrow tables: the newest few, each cut after a million rows, all together
   bounded. So a person can scroll, sort, draw and download without asking again, in bounded memory.
3. A mistake in SQL is an answer like any other: it says what is wrong and where.
"""

import contextlib
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import msgspec
import pyarrow as pa

from caudal.cli.shell.loop import Shell
from caudal.cli.shell.statements import statements
from caudal.cli.ui.series import SeriesRoom
from caudal.cli.ui.shelf import LoadedFile, ShelfRoom
from caudal.embedded.dataset_session import DatasetSession
from caudal.embedded.explain import query_graph
from caudal.errors import UsageError
from caudal.formats.replies import PlanGraph, ResultColumn
from caudal.jobs.plan_pictures import graph_reply
from caudal.model import ADHOC, ParameterValue
from caudal.results.answers import Result
from caudal.results.rejects import Rejects
from caudal.run_options import Silent
from caudal.sql.adhoc import asker_mistakes

MOST_ROWS = 1_000_000
KEPT, KEPT_BYTES = 24, 1 << 30  # answers: how many, and how large together


class AskedSql(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A SELECT from the page, and the values of its parameters."""

    sql: str
    parameters: dict[str, str | int | float | bool | None] = {}


class AnswerAbout(msgspec.Struct, frozen=True):
    """What an answer holds; its rows are read by page under `id`."""

    id: int
    rows: int
    bytes: int
    seconds: float
    columns: tuple[ResultColumn, ...]
    cut: bool  # whether there were more rows
    rejects: tuple[str, ...]


@dataclass
class UiSession:
    """The SELECTs of one page after the other."""

    shell: Shell
    shelf: ShelfRoom | None = None  # where dropped files go
    series: SeriesRoom | None = None
    _lock: Lock = field(default_factory=Lock)
    _kept: dict[int, Result] = field(default_factory=dict)
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def about(self) -> dict[str, Any]:
        """Return the tables with their columns, functions and parameters, for completion."""
        with self._lock:
            shell = self.shell
            schemas = {name: dict(one) for name, one in shell.session.schemas(shell.app).items()}
            names = shell.catalog()
        return {
            "application": shell.app.name if shell.app.name != ADHOC else "files",
            "title": shell.app.title,
            "tables": schemas,
            "functions": list(names.functions),
            "versions": self._versions(),
            "shelf": self.shelf.place if self.shelf else "",
            "series": self.series is not None,
            "parameters": {name: str(value) for name, value in shell.app.parameters.items()},
        }

    def _versions(self) -> list[dict[str, Any]]:
        """Return the versions of a dataset, the newest first; [] for files."""
        session = self.shell.session
        if not isinstance(session, DatasetSession):
            return []
        return [msgspec.structs.asdict(one) for one in reversed(session.shelf.contents.history)]

    def answer(self, asked: AskedSql) -> AnswerAbout:
        """Compute one SELECT and keep its answer."""
        with self._lock, asker_mistakes(), contextlib.ExitStack() as running:
            began = time.monotonic()
            application = self._bound(asked)
            result = running.enter_context(
                self.shell.session.stream(application, self.shell.sources, Silent())
            )
            rows, cut = _taken(result.parts)
            seconds = time.monotonic() - began
            return self._keep(Result(ADHOC, "", rows, seconds), result.rejects, cut=cut)

    def plan(self, asked: AskedSql) -> PlanGraph:
        """Return the plan of a SELECT."""
        with self._lock, asker_mistakes():
            graph = query_graph(self._bound(asked), ADHOC, {})
        return graph_reply(graph, "", {}, {})

    def load(self, table: str, name: str) -> LoadedFile:
        """Load the dropped file, and go on with the newest version."""
        if self.shelf is None:
            raise UsageError("start `caudal ui APP --from DATASET` to load files")
        with asker_mistakes():
            loaded = self.shelf.load(table, name)
        with self._lock:
            self.shell.session = self.shelf.session()
        return loaded

    def result(self, number: int) -> Result:
        """Return a kept answer."""
        found = self._kept.get(number)
        if found is None:
            raise UsageError("this answer is no longer kept: run the SELECT again")
        return found

    def _held(self) -> int:
        return sum(one.table.nbytes for one in self._kept.values())

    def _bound(self, asked: AskedSql) -> Any:
        (select, *more) = statements(asked.sql) or [""]
        if more or not select or select.startswith("."):
            raise UsageError("write one SELECT")
        values: dict[str, ParameterValue] = {**self.shell.app.parameters}
        values.update({name: one for name, one in asked.parameters.items() if one is not None})
        self.shell.values = values
        return self.shell.asked(select)

    def _keep(self, result: Result, rejects: Rejects, *, cut: bool) -> AnswerAbout:
        number = next(self._ids)
        self._kept[number] = result
        table = result.table
        while len(self._kept) > KEPT or (len(self._kept) > 1 and self._held() > KEPT_BYTES):
            del self._kept[next(iter(self._kept))]
        columns = tuple(ResultColumn(one.name, str(one.type)) for one in table.schema)
        told = (*(one.told() for one in rejects), *rejects.unread)
        return AnswerAbout(number, table.num_rows, table.nbytes, result.seconds, columns, cut, told)


def _taken(parts: Iterator[pa.Table]) -> tuple[pa.Table, bool]:
    """Return at most MOST_ROWS rows, and whether there were more."""
    found: list[pa.Table] = []
    rows = 0
    for part in parts:
        found.append(part.slice(0, MOST_ROWS - rows))
        rows += part.num_rows
        if rows > MOST_ROWS:
            break
    return pa.concat_tables(found, promote_options="permissive"), rows > MOST_ROWS
