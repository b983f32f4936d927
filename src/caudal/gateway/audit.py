"""The audit log: one line of JSON for each create, cancel, fetch and refusal.
docs/formats/audit.md.

Rules
1. A line names owner, address, job and outcome. It never contains a token or a row.
2. The log is bounded: a full file is renamed with a number, and only a few of these are kept.
3. An owner cannot push out the lines of others by causing refusals. Only a few refusals a second
   are written per owner and code; the next line says how many were left out.
4. If the log cannot be written, clients are still served. The process's own log reports it.
"""

import json
import logging
import os
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from caudal.gateway.rates import Rates
from caudal.gateway.visits import Visit
from caudal.process.logs import fields

MOST_BYTES = 16 << 20
KEPT = 4  # full files, beside the current one
_PER_SECOND, _BURST = 2.0, 50.0
_ANSWERS = ("not_ready", "no_batch", "no_preview")  # 404s that correct clients cause in normal use
_TEXT = 200  # characters kept of text that a client chose: a path, an id

_log = logging.getLogger(__name__)


class Audit:
    """Writer of audit lines; without a path it writes nothing. For the event loop's thread only."""

    def __init__(
        self,
        path: Path | None = None,
        gateway: str = "",
        *,
        most_bytes: int = MOST_BYTES,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._gateway = gateway
        self._most_bytes = most_bytes
        self._now = now
        self._rates = Rates(_PER_SECOND, _BURST)
        self._left_out: Counter[str] = Counter()
        self._is_ill = False

    def note(self, visit: Visit, method: str, path: str, status: int, address: str | None) -> None:
        """Write a line for an answered request if it is an action or a refusal."""
        refused = status >= 400 and visit.code not in _ANSWERS
        if self._path is None or not (refused or (visit.action and 200 <= status < 400)):
            return
        line = {
            "action": "refuse" if refused else visit.action,
            "owner": visit.owner,
            "address": address,
            "method": method,
            "path": path[:_TEXT],
            "job": visit.job[:_TEXT] if visit.job else None,
            "query": visit.query[:_TEXT] if visit.query else None,
            "dataset": visit.dataset[:_TEXT] if visit.dataset else None,
            "status": status,
            "code": visit.code,
        }
        if refused and not self._may_write(f"{visit.owner or ''}\n{visit.code}", line):
            return
        self._write({name: value for name, value in line.items() if value is not None})

    def _may_write(self, kind: str, line: dict[str, Any]) -> bool:
        """Return False if the line must be left out (rule 3)."""
        if self._rates.take(kind, self._now()):
            self._left_out[kind] += 1
            return False
        if left_out := self._left_out.pop(kind, 0):
            line["left_out"] = left_out
        return True

    def _write(self, line: dict[str, Any]) -> None:
        assert self._path is not None
        at = datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="milliseconds")
        text = json.dumps({"time": at.replace("+00:00", "Z"), "gateway": self._gateway, **line})
        try:
            append(self._path, text.encode() + b"\n", self._most_bytes)
        except OSError as error:
            if not self._is_ill:  # rule 4; logged once
                _log.error("the audit log cannot be written", extra=fields(reason=str(error)))
            self._is_ill = True
        else:
            self._is_ill = False


def append(path: Path, data: bytes, most_bytes: int) -> None:
    """Append a line; rotate the files first if this one is full."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        if path.stat().st_size + len(data) > most_bytes:
            _rotate(path)
    except FileNotFoundError:
        pass
    file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    try:
        os.write(file, data)
    finally:
        os.close(file)


def _rotate(path: Path) -> None:
    names = [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, KEPT + 1))]
    for older, newer in zip(reversed(names[1:]), reversed(names[:-1]), strict=True):
        if newer.exists():
            newer.replace(older)
