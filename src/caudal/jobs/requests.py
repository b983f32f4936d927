"""Checks of a request before it is used: its names become parts of keys."""

import msgspec

from caudal.errors import FormatError, UsageError
from caudal.formats import batch as batch_format
from caudal.formats import frame
from caudal.formats import job as job_format
from caudal.formats.job import Request
from caudal.formats.keys import JOB_ID, MOST_GROUP, MOST_PARTITIONS, NAME, REJECTS
from caudal.formats.outcomes import End
from caudal.jobs.interfaces import ConflictError

_MOST_COLUMNS = 10_000
_MOST_INDEX_BYTES = 2 << 20  # index of a batch: mostly the names of its columns
_MOST_NAMES = 1_000  # tables, and as many queries


def check_job_id(job_id: str) -> None:
    if not JOB_ID.match(job_id):
        raise UsageError(f"{job_id!r} is not a valid job id: use letters, digits, _ and -")


def is_name(text: str) -> bool:
    """Return whether a table or query may have this name."""
    return bool(NAME.match(text)) and text.lower() != "raw"


def check_request(request: Request) -> None:
    """Check the names and numbers of a request. The planner checks its SQL."""
    text, options = request.application, request.options
    for name in [*(one.name for one in text.tables), *(one.name for one in text.queries)]:
        if not is_name(name):
            raise UsageError(f"{name!r} cannot be a name here: use letters, digits and _")
    if any(query.name == REJECTS for query in text.queries):
        raise UsageError(f"no query may be called {REJECTS!r}: the rejects report is")
    _check_once("tables", [one.name for one in text.tables])
    _check_once("queries", [one.name for one in text.queries])
    for table in text.tables:
        if not all(table.columns) or len(table.columns) > _MOST_COLUMNS:
            raise UsageError(
                f"table {table.name}: every column needs a name, at most {_MOST_COLUMNS} allowed"
            )
    for label, value, least, most in (
        ("batch_bytes", options.batch_bytes, 1, batch_format.MOST_BYTES // 2),  # records go on
        ("partitions", options.partitions, 1, MOST_PARTITIONS),
        ("group", options.group, 1, MOST_GROUP),
        ("silent_seconds", options.silent_seconds, 1.0, 30 * 86_400.0),
        ("keep_seconds", options.keep_seconds, 0.0, 366 * 86_400.0),
    ):
        if not least <= value <= most:
            raise UsageError(f"{label} must lie between {least} and {most}, not {value}")


def _check_once(what: str, names: list[str]) -> None:
    """Raise UsageError if two names are equal. SQL names must differ by more than their case."""
    if len(names) > _MOST_NAMES:
        raise UsageError(f"{len(names)} {what} are too many: at most {_MOST_NAMES} are allowed")
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise UsageError(f"two {what} are called {name!r}: names must differ")
        seen.add(name.lower())


def check_sentiment(request: Request, allowed: tuple[str, ...] | None) -> None:
    """Raise UsageError if the model is not offered.

    A model is a folder of the machine that loads it, so clients may only name offered ones.
    """
    wanted = request.application.sentiment
    if allowed is not None and wanted not in allowed:
        raise UsageError(
            f"the sentiment model {wanted!r} is not offered here; offered: {', '.join(allowed)}"
        )


def identity(request: Request) -> str:
    """Return a digest that is equal for equal requests.

    `silent_seconds` is not part of it, because the gateway may change that.
    """
    options = msgspec.structs.replace(request.options, silent_seconds=0.0)
    return job_format.request_digest(msgspec.structs.replace(request, options=options))


def described(data: bytes) -> batch_format.BatchHeader:
    """Return the header of a batch. Its size is checked before it is decoded."""
    most = frame.HEAD_BYTES + _MOST_INDEX_BYTES
    if frame.body_offset(data) > most:
        raise UsageError(f"this is not a batch: its index has more than {_MOST_INDEX_BYTES} bytes")
    try:
        found = batch_format.describe(frame.of_bytes(data), "the batch")
    except FormatError as error:
        raise UsageError(f"this is not a batch: {error}") from None
    if len(found.columns) > _MOST_COLUMNS:
        raise UsageError(f"the batch has more than {_MOST_COLUMNS} columns")
    return found


def check_batch(data: bytes, index: batch_format.BatchHeader, most: int) -> None:
    if index.bytes > most:
        raise UsageError(f"the batch holds {index.bytes} bytes; at most {most} are taken")
    try:
        batch_format.check(data, "the batch")
    except FormatError as error:
        raise UsageError(f"this is not a batch: {error}") from None


def check_same_end(table: str, first: End, end: End) -> None:
    """Raise ConflictError if a table has ended otherwise before."""
    if first != end:
        raise ConflictError(
            f"table {table} has ended with {first.batches} batches of {first.bytes} "
            f"bytes; this end says {end.batches} of {end.bytes}, or other content"
        ) from None
