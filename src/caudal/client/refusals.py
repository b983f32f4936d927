"""Mapping from a gateway's refusal to the error that the client raises. docs/formats/http.md."""

import msgspec

from caudal.decoding import decode_json
from caudal.errors import ApplicationError, CaudalError, QueryError, UsageError
from caudal.formats.outcomes import Outcome
from caudal.jobs.interfaces import ConflictError, GoneError, JobError
from caudal.results.answers import one_line

_MOST_TOLD = 2_000  # characters of a message: it must be one line for a person


class _Refusal(msgspec.Struct):
    code: str
    message: str
    outcome: Outcome | None = None
    quota: str | None = None


class _Body(msgspec.Struct):
    error: _Refusal


def code_of(body: bytes) -> str:
    """Return the code of a refusal; "" if the body is not a refusal."""
    refusal = _read(body)
    return refusal.code if refusal else ""


def quota_of(body: bytes) -> str | None:
    """Return the quota that a refusal names; None if it names none."""
    refusal = _read(body)
    return refusal.quota if refusal else None


def error_of(address: str, status: int, body: bytes) -> CaudalError:
    """Return the error for an answer that is not a success."""
    refusal = _read(body)
    if refusal is None:
        return UsageError(
            f"{address} answered {status}, but not as a Caudal gateway does: is the address right?"
        )
    message = one_line(refusal.message[:_MOST_TOLD])
    match refusal.code:
        case "no_token":
            return UsageError(
                f"{address} does not know this token: give another one with --token-file"
            )
        case "over_quota":
            return JobError(message)
        case "no_job" | "not_ready" | "ended":
            return GoneError(message, refusal.outcome)
        case "conflict" | "no_table" | "no_query" | "no_preview" | "no_batch":
            return ConflictError(message)
        case "cannot_plan":
            return ApplicationError(message)
        case "query_failed":
            return QueryError(message)
        case _ if 400 <= status < 500:
            return UsageError(message)
    return JobError(f"{address} answered {status}: {message}")


def _read(body: bytes) -> _Refusal | None:
    try:
        return decode_json(body, _Body).error
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
