"""Logs of processes: one line per event on standard error, as JSON or as text.

    log = logging.getLogger(__name__)
    log.info("task done", extra=fields(job="j1", task="map", table="reviews", batch=7))

Rules
1. The event is a fixed phrase; everything that varies is a field. Fields keep their names: those of
   STABLE mean the same in every process, and dashboards may rely on them.
2. A line is a line: text from outside (an error's words, a file's name) cannot break out of it.
3. Secrets are never logged: whoever has one logs what it belongs to instead.
4. Where nobody set up logs (a run in one process, a program that calls Caudal) nothing is written:
   what matters is in the answers or in the error.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

Style = Literal["json", "text"]

STABLE = (
    "job", "run", "task", "table", "batch", "group", "fold", "partition", "query",
    "seconds", "deliveries", "bytes_in", "bytes_out", "reason",
)  # fmt: skip

_LIBRARIES = ("aiormq", "aio_pika")  # they log every attempt; Caudal logs changes of state
_FIELDS = "caudal_fields"

logging.getLogger("caudal").addHandler(logging.NullHandler())  # rule 4


def log_of(module: str) -> logging.Logger:
    """Return the log of a module that programs call, for lines to people (rule 4)."""
    return logging.getLogger(module)


def fields(**values: Any) -> dict[str, Any]:
    """Return the `extra` of a logging call, without values that are None."""
    return {_FIELDS: {name: value for name, value in values.items() if value is not None}}


def set_up_logs(style: Style, kind: str, name: str, stream: TextIO | None = None) -> None:
    """Set up logging for this kind of process with this name. Replaces an earlier set-up."""
    handler = logging.StreamHandler(stream or sys.stderr)
    lines = JsonLines if style == "json" else TextLines
    handler.setFormatter(lines(kind, name))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("caudal").setLevel(logging.INFO)
    for library in _LIBRARIES:
        logging.getLogger(library).setLevel(logging.CRITICAL)


class JsonLines(logging.Formatter):
    """{"time": ..., "level": ..., "kind": ..., "process": ..., "event": ..., fields}"""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__()
        self._process = {"kind": kind, "process": name}

    def format(self, record: logging.LogRecord) -> str:
        head = {"time": _time(record), "level": record.levelname.lower(), **self._process}
        line = {**head, "event": record.getMessage(), **_fields_of(record)}
        return json.dumps(line, ensure_ascii=False, default=str)


class TextLines(logging.Formatter):
    """2026-01-31T12:00:00.000Z info worker w1: task done job=j1 task=map"""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__()
        self._who = f"{kind} {name}"

    def format(self, record: logging.LogRecord) -> str:
        pairs = "".join(f" {name}={_shown(value)}" for name, value in _fields_of(record).items())
        event = " ".join(record.getMessage().split())
        return f"{_time(record)} {record.levelname.lower()} {self._who}: {event}{pairs}"


def _fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields of a record, and the traceback of an unexpected error as one more."""
    found = dict(getattr(record, _FIELDS, {}))
    if record.exc_info and record.exc_info[0] is not None:
        found["traceback"] = logging.Formatter().formatException(record.exc_info)
    return found


def _time(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"


def _shown(value: Any) -> str:
    """Return one word as it is, anything else as JSON: with quotes, without line breaks."""
    text = value if isinstance(value, str) else str(value)
    plain = text.isprintable() and text and not any(one in text for one in " \"'=")
    return text if plain else json.dumps(text, ensure_ascii=False)
