"""Progress on standard error: bars on a terminal, else one line per step."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID


class Bars:
    """A bar per table, with rate and remaining time."""

    def __init__(self, bars: "Progress") -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def table(self, name: str, done_bytes: int, total_bytes: int) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=total_bytes)
        self._bars.update(self._tasks[name], completed=done_bytes)

    def records(self, name: str, done: int, total: int) -> None:
        self.table(name, done, total)

    def query(self, name: str, seconds: float) -> None:
        """Do nothing: answers are printed as tables."""


class Quiet:
    """No progress."""

    def table(self, name: str, done_bytes: int, total_bytes: int) -> None: ...

    def records(self, name: str, done: int, total: int) -> None: ...

    def query(self, name: str, seconds: float) -> None: ...


class Lines:
    """One line per finished step, for logs and pipes."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._told: set[str] = set()

    def table(self, name: str, done_bytes: int, total_bytes: int) -> None:
        if done_bytes == total_bytes and name not in self._told:
            self._told.add(name)
            self._console.print(f"read {name}: {total_bytes / 1e6:,.1f} MB", highlight=False)

    def records(self, name: str, done: int, total: int) -> None:
        if done == total:
            self._console.print(f"wrote {name}: {total:,} rows", highlight=False)

    def query(self, name: str, seconds: float) -> None:
        self._console.print(f"answered {name}: {seconds:.2f} s", highlight=False)


@contextlib.contextmanager
def watch(console: "Console", *, quiet: bool = False) -> Iterator[Bars | Lines | Quiet]:
    """Yield bars if the console is a terminal, else lines."""
    if quiet:
        yield Quiet()
        return
    if not console.is_terminal:
        yield Lines(console)
        return
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        yield Bars(bars)
