"""Display of a submitted job: bars per table and query, answers as they arrive."""

import contextlib
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from caudal.cli.destination import Destination
from caudal.cli.output import forget_partial, give, give_partial
from caudal.client.growing import GrowingAnswers
from caudal.client.http import HttpGateways
from caudal.client.previews import PreviewThreads
from caudal.client.results import result_of
from caudal.client.stalled import Standstill, told
from caudal.client.submit import Watching
from caudal.errors import QueryError
from caudal.formats.batch import BatchHeader
from caudal.formats.keys import REJECTS
from caudal.formats.replies import JobStatus
from caudal.results.answers import Result, one_line, show

_ROWS_PREVIEWED = 50  # per query; the answer has all rows


class SubmitProgress(Watching):
    """A watcher of a job that writes each answer on arrival, to a file or to the screen."""

    def __init__(
        self,
        gateways: HttpGateways,
        destination: Destination,
        *,
        preview: bool,
        untitled: bool = False,
        waits: bool = True,
    ) -> None:
        self.results: dict[str, Result] = {}
        self.failures: dict[str, QueryError] = {}
        self.job_id = ""
        self._gateways = gateways
        self._destination = destination
        self._preview = preview
        self._waits = waits  # for the answers: else nothing is shown of those that grow
        self._untitled = untitled
        self._console = Console(stderr=True)
        self._display: _Bars | _Lines = _Lines(self._console)
        self._previewing: PreviewThreads | None = None
        self._growing: GrowingAnswers | None = None
        self._previewed: dict[str, int] = {}
        self._began = time.perf_counter()
        self._bytes: dict[str, int] = {}  # sent, per table
        self._counting = threading.Lock()
        self._lock = threading.Lock()
        self._standstill = Standstill()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Show bars inside the block if standard error is a terminal."""
        if self._console.is_terminal:
            columns = (
                TextColumn("{task.description:<12}"),
                BarColumn(),
                TextColumn("{task.fields[told]}"),
                TimeElapsedColumn(),
            )
            bars = Progress(
                *columns,
                console=self._console,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._display = _Bars(bars)
        try:
            with self._display:
                yield
        finally:
            if self._previewing is not None:
                self._previewing.close()
            if self._growing is not None:
                self._growing.close()

    def began(self, job_id: str, sizes: Mapping[str, int | None], status: JobStatus) -> None:
        """Show the id of the new job."""
        self.job_id = job_id
        self._display.say(f"job {job_id}")
        self._display.begin(sizes, status)
        if self._preview and status.previews:
            tables = {query: status.reads[query][0] for query in status.previews}
            self._previewing = PreviewThreads(self._gateways, job_id, tables, self._show_rows)
        forget_partial(status.queries, self._destination)
        if self._waits and status.growing and self._destination.partial_path(status.growing[0]):
            self._growing = GrowingAnswers(
                self._gateways, job_id, status, sizes, self._write_partial
            )

    def sent(self, table: str, batch: BatchHeader) -> None:
        """Count a durable batch."""
        with self._counting:
            self._bytes[table] = self._bytes.get(table, 0) + batch.bytes
            self._display.sent(table, self._bytes[table])
        if self._previewing is not None:
            self._previewing.confirm(table, batch.number)
        if self._growing is not None:
            self._growing.confirm(table, batch.number)

    def ended(self, table: str) -> None:
        """Show that a table is durable."""
        self._display.ended(table, self._bytes.get(table, 0))

    def saw(self, status: JobStatus) -> None:
        """Show the progress of the cluster."""
        self._display.saw(status)
        if seconds := self._standstill.begins(status, time.perf_counter()):
            self._display.say(told(seconds))
        if status.outcome is not None and status.outcome.state != "done":
            self._forget_growing(status.queries)  # the answer of which they are a part never comes

    def answered(self, query: str, result: bytes) -> None:
        """Write or show an answer that arrived, or the failure of its query."""
        if query == REJECTS:
            return
        if self._previewing is not None:
            self._previewing.finish(query)
        if self._growing is not None:
            self._growing.finish([query])
        try:
            found = result_of(query, result, self.seconds)
        except QueryError as error:
            self._forget_growing([query])
            self.failures[query] = error
            self._display.failed(query, str(error))
            return
        if self._untitled:
            found = Result(found.name, "", found.table, found.seconds)
        self.results[query] = found
        with self._lock:
            if not self._destination.takes_all_at_once:
                self._display.aside(lambda: give({query: found}, self._destination))
            self._display.answered(query, found.seconds)

    def finish(self, queries: Sequence[str]) -> None:
        """Write the output that needs all answers: one JSON object."""
        if self._destination.takes_all_at_once:
            given = {name: self.results[name] for name in queries if name in self.results}
            give(given, self._destination)

    def _write_partial(self, query: str, rows: pa.Table) -> None:
        give_partial(Result(query, "", rows), self._destination)

    def _forget_growing(self, queries: Sequence[str]) -> None:
        if self._growing is not None:
            self._growing.finish(queries)
            forget_partial(queries, self._destination)

    def _show_rows(self, query: str, rows: list[dict[str, Any]]) -> None:
        """Print some rows of a preview, one per line."""
        done = self._previewed.get(query, 0)
        self._previewed[query] = done + len(rows)
        with self._lock:
            if query in self.results:
                return
            for row in rows[: max(0, _ROWS_PREVIEWED - done)]:
                line = ", ".join(f"{name}: {show(value)}" for name, value in row.items())
                self._display.say(f"{query} so far: {one_line(line)[:160]}")
            if done < _ROWS_PREVIEWED <= done + len(rows):
                self._display.say(f"{query} so far: … and more")


class _Lines:
    """One line per step, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...

    def say(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)

    def aside(self, act: Callable[[], None]) -> None:
        act()

    def begin(self, sizes: Mapping[str, int | None], status: JobStatus) -> None: ...

    def sent(self, table: str, size: int) -> None: ...

    def ended(self, table: str, size: int) -> None:
        self.say(f"sent {table}: {size / 1e6:,.1f} MB")

    def saw(self, status: JobStatus) -> None: ...

    def answered(self, query: str, seconds: float) -> None:
        self.say(f"answered {query}: {seconds:.2f} s")

    def failed(self, query: str, why: str) -> None:
        self.say(f"{query} failed: {why}")


class _Bars:
    """A bar per table for sent data, and a bar per query for computed data."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tables: dict[str, TaskID] = {}
        self._queries: dict[str, TaskID] = {}
        self._expected: dict[str, int] = {}  # estimated batches per table

    def __enter__(self) -> None:
        self._bars.start()

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def say(self, line: str) -> None:
        self._bars.console.print(Text(line), soft_wrap=True)

    def aside(self, act: Callable[[], None]) -> None:
        """Hide the bars while `act` writes to the terminal."""
        self._bars.stop()
        try:
            act()
            sys.stdout.flush()
        finally:
            self._bars.start()

    def begin(self, sizes: Mapping[str, int | None], status: JobStatus) -> None:
        batch = status.options.batch_bytes
        for table, size in sizes.items():
            self._tables[table] = self._bars.add_task(table, total=size, told="")
            self._expected[table] = math.ceil((size or 0) / batch)
        for query in status.queries:
            if query not in self._queries:  # else the question is asked again
                self._queries[query] = self._bars.add_task(query, total=None, told="waits")

    def sent(self, table: str, size: int) -> None:
        told = f"sent {size / 1e6:,.1f} MB"
        self._bars.update(self._tables[table], completed=size, told=told)

    def ended(self, table: str, size: int) -> None:
        told = f"sent, {size / 1e6:,.1f} MB"
        self._bars.update(self._tables[table], total=size or 1, completed=size or 1, told=told)

    def saw(self, status: JobStatus) -> None:
        for query, bar in self._queries.items():
            tables = [status.tables[name] for name in status.reads.get(query, ())
                      if name in status.tables]  # fmt: skip
            if not tables or query in status.results:
                continue
            read = sum(table.mapped for table in tables)
            known = all(table.batches is not None for table in tables)
            if known:
                total = sum(table.batches or 0 for table in tables)
            else:
                total = sum(self._expected.get(name, 0) for name in status.reads[query])
            told = "computing" if known and read >= total else f"{read} batches read"
            self._bars.update(bar, total=max(total, read) + 1, completed=read, told=told)

    def answered(self, query: str, seconds: float) -> None:
        if query in self._queries:
            told = f"answered, {seconds:.2f} s"
            self._bars.update(self._queries[query], total=1, completed=1, told=told)

    def failed(self, query: str, why: str) -> None:
        self.say(f"{query} failed: {why}")
        if query in self._queries:
            self._bars.update(self._queries[query], total=1, completed=1, told="failed")
