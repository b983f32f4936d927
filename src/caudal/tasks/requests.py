"""What a request must be before anything is made of it: its names become parts of keys."""

import re

from caudal.core.tasks import REJECTS
from caudal.errors import UsageError
from caudal.formats.job import Request

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")


def check_job_id(job_id: str) -> None:
    if not _ID.match(job_id):
        raise UsageError(f"{job_id!r} is no id for a job: use letters, digits, _ and -")


def check_request(request: Request) -> None:
    """Names and numbers that the rest relies on; SQL is for the planner to judge."""
    text, options = request.application, request.options
    for name in [*(one.name for one in text.tables), *(one.name for one in text.queries)]:
        if not _NAME.match(name) or name.lower() == "raw":
            raise UsageError(f"{name!r} cannot be a name here: use letters, digits and _")
    if any(query.name == REJECTS for query in text.queries):
        raise UsageError(f"no query may be called {REJECTS!r}: the rejects report is")
    for label, value, least, most in (
        ("batch_bytes", options.batch_bytes, 1, 1 << 30),
        ("partitions", options.partitions, 1, 9_999),
        ("group", options.group, 1, 1_000),
        ("silent_seconds", options.silent_seconds, 1.0, 30 * 86_400.0),
        ("keep_seconds", options.keep_seconds, 0.0, 366 * 86_400.0),
    ):
        if not least <= value <= most:
            raise UsageError(f"{label} must lie between {least} and {most}, not {value}")
