"""Progress of a run in a notebook: one bar for each table that is being read.

Rules
1. Nothing is shown before a run has taken _QUIET_SECONDS: quick queries leave no trace.
2. The bars are drawn again at most every _PAUSE_SECONDS.
3. They are removed at the end, also by an error: what stays is the answer.
"""

import contextlib
import html
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

_QUIET_SECONDS = 0.5
_PAUSE_SECONDS = 0.2


class NotebookProgress:
    """A receiver of progress that shows itself by IPython's `display`."""

    def __init__(self, display: Callable[..., Any], clock: Callable[[], float]) -> None:
        self._display = display
        self._clock = clock
        self._next = clock() + _QUIET_SECONDS
        self._handle: Any = None
        self._tables: dict[str, tuple[int, int]] = {}
        self._answered: list[str] = []

    def table(self, name: str, done_bytes: int, total_bytes: int) -> None:
        self._tables[name] = (done_bytes, total_bytes)
        self._show()

    def query(self, name: str, seconds: float) -> None:
        self._answered.append(f"{name}: {seconds:.2f} s")
        self._show()

    def remove(self) -> None:
        """Remove the bars."""
        self._tables, self._answered = {}, []
        if self._handle is not None:
            self._handle.update(self)

    def _show(self) -> None:
        now = self._clock()
        if now < self._next:
            return
        self._next = now + _PAUSE_SECONDS
        if self._handle is None:
            self._handle = self._display(self, display_id=True)
        else:
            self._handle.update(self)

    def __repr__(self) -> str:
        lines = [
            f"{name}: {done / 1e6:,.1f} of {total / 1e6:,.1f} MB"
            for name, (done, total) in self._tables.items()
        ]
        return "\n".join([*lines, *self._answered])

    def _repr_html_(self) -> str:
        bars = [
            f"<div>{html.escape(name)} <progress value='{done}' max='{max(total, 1)}'></progress> "
            f"{done / 1e6:,.1f} of {total / 1e6:,.1f} MB</div>"
            for name, (done, total) in self._tables.items()
        ]
        return "".join([*bars, *(f"<div>{html.escape(one)}</div>" for one in self._answered)])


@contextlib.contextmanager
def notebook_progress() -> Iterator[NotebookProgress | None]:
    """Provide progress that shows itself if this runs in a notebook, else None."""
    if not _in_notebook():
        yield None
        return
    from IPython.display import display

    progress = NotebookProgress(display, time.monotonic)
    try:
        yield progress
    finally:
        progress.remove()


def _in_notebook() -> bool:
    """Return whether a kernel runs this code; IPython is never imported for that."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
