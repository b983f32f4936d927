"""The settings that rows need, in a session that several runs may share at a time."""

import contextlib
import threading
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

_NEEDED = {
    # Rows are parts of streams of up to 4 MiB (rows.py): few of them make a large batch of Arrow.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",  # the types of rows are fixed
}
# Rows are few and large. Planning again after each stage, and compiling code for each frame, takes
# Spark more time than moving them. A server may refuse these.
_FASTER = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@dataclass
class _Changed:
    """A session whose settings are changed, and what they were."""

    session: Any
    runs: int = 0  # that need the changes
    lock: threading.Lock = field(default_factory=threading.Lock)
    before: dict[str, str | None] | None = None

    def change(self) -> None:
        """Change the settings unless an earlier run has."""
        if self.before is not None:
            return
        changed: dict[str, str | None] = {}
        conf = self.session.conf
        for name, value in {**_NEEDED, **_FASTER}.items():
            before = conf.get(name, None)
            try:
                conf.set(name, value)
            except Exception:
                if name in _NEEDED:
                    self._restore(changed)
                    raise
                continue
            changed[name] = before
        self.before = changed

    def restore(self) -> None:
        """Restore what was changed."""
        before, self.before = self.before or {}, None
        self._restore(before)

    def _restore(self, before: dict[str, str | None]) -> None:
        """Restore each setting on its own."""
        for name, value in before.items():
            with contextlib.suppress(Exception):  # the session may be gone
                conf = self.session.conf
                conf.unset(name) if value is None else conf.set(name, value)


_LOCK = threading.Lock()
_CHANGED: dict[Hashable, _Changed] = {}  # of this process, by session


@contextlib.contextmanager
def settings(session: Any) -> Iterator[None]:
    """Set what rows need; after the last run of the session, restore what was before the first."""
    key = _identity(session)
    with _LOCK:
        changed = _CHANGED.setdefault(key, _Changed(session))
        changed.runs += 1
    try:
        with changed.lock:
            changed.change()
        yield
    finally:
        with changed.lock:
            with _LOCK:
                changed.runs -= 1
            if not changed.runs:
                changed.restore()
            with _LOCK:
                if not changed.runs:  # no other run has come meanwhile
                    _CHANGED.pop(key, None)


def _identity(session: Any) -> Hashable:
    """Return what is the same for all objects that stand for one session."""
    java = getattr(session, "_jsparkSession", None)
    if java is not None:
        return "classic", hash(java)  # Java's own, which is by identity
    return "connect", getattr(session, "session_id", None) or id(session)
