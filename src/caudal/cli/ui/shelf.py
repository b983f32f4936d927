"""Loads of files that are dropped onto the page of `caudal ui --from DATASET`.

Rules
1. One file at a time: its parts come in order and are written to a temporary file, so memory is
   bounded. A part that does not continue the file is refused. Its first part forgets the file
   before it.
2. The whole file is then loaded as by `caudal load`: whole or not at all, exactly once.
3. After a load the session is opened anew, over the newest version.
"""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import msgspec

from caudal.datasets.shelf import place_to_load
from caudal.embedded.dataset_load import open_loader
from caudal.embedded.dataset_sources import file_source
from caudal.embedded.session import TableSession
from caudal.errors import UsageError
from caudal.model import Application
from caudal.run_options import RunOptions

_ENDING = re.compile(r"(\.[A-Za-z0-9]{1,8}){0,2}\Z")
_MOST_NAME = 200  # characters


class LoadedFile(msgspec.Struct, frozen=True):
    """What became of a file; `skipped` says why nothing was loaded."""

    version: int
    rows: int
    rejected: int
    skipped: str = ""


@dataclass
class ShelfRoom:
    """Takes files for one dataset. `opened` opens a session over its newest version."""

    app: Application
    place: str
    options: RunOptions
    folder: Path  # for the file that is being sent
    opened: Callable[[], AbstractContextManager[TableSession]]
    _held: ExitStack = field(default_factory=ExitStack)
    _name: str = ""
    _lock: Lock = field(default_factory=Lock)

    def session(self) -> TableSession:
        """Open the newest version; close the session before it."""
        self._held.close()
        return self._held.enter_context(self.opened())

    def close(self) -> None:
        self._held.close()

    def take(self, name: str, offset: int, data: bytes) -> int:
        """Write a part of a file; return the size so far."""
        with self._lock:
            if not offset:
                self._spool.unlink(missing_ok=True)
                self._name = name[:_MOST_NAME]
            size = self._spool.stat().st_size if self._spool.exists() else 0
            if name[:_MOST_NAME] != self._name or offset != size:
                raise UsageError("another file is being sent: send this one again")
            with self._spool.open("ab") as file:
                file.write(data)
            return size + len(data)

    def load(self, table: str, name: str) -> LoadedFile:
        """Load the file that was sent."""
        if table not in {one.name for one in self.app.tables}:
            raise UsageError(f"there is no table {table[:60]!r}")
        with self._lock:
            if name[:_MOST_NAME] != self._name or not self._spool.exists():
                raise UsageError("send the file first")
            try:
                return self._load(table)
            finally:
                self._spool.unlink(missing_ok=True)

    def _load(self, table: str) -> LoadedFile:
        source = file_source(table, self._spool, self._name)
        with (
            place_to_load(self.place) as store,
            open_loader(self.app, self.place, store, self.options) as loader,
        ):
            report = loader.load([source])
        if report.version is None:
            why = report.skipped[0].reason if report.skipped else "there is nothing new in it"
            return LoadedFile(report.newest, 0, 0, why)
        return LoadedFile(report.version, report.rows, report.rejects.total)

    @property
    def _spool(self) -> Path:
        """The temporary file. Its ending tells how to read it."""
        ending = _ENDING.search(Path(self._name).name)
        return self.folder / f"dropped{ending[0] if ending else ''}"
