"""What a gateway's refusal means: the error that a client raises for it. docs/formats/http.md."""

import msgspec

from caudal.errors import ApplicationError, CaudalError, QueryError, UsageError
from caudal.formats.outcomes import Outcome
from caudal.jobs.interfaces import ConflictError, GoneError, JobError
from caudal.results.answers import one_line

_MOST_TOLD = 2_000  # letters of a message: it is to be one line for a person


class _Refusal(msgspec.Struct):
    code: str
    message: str
    outcome: Outcome | None = None
    quota: str | None = None


class _Body(msgspec.Struct):
    error: _Refusal


def code_of(body: bytes) -> str:
    """The code of a refusal; nothing if the body is none."""
    refusal = _read(body)
    return refusal.code if refusal else ""


def quota_of(body: bytes) -> str | None:
    """The quota that a refusal names, if it names one."""
    refusal = _read(body)
    return refusal.quota if refusal else None


def error_of(address: str, status: int, body: bytes) -> CaudalError:
    """The error for an answer that is not a success."""
    refusal = _read(body)
    if refusal is None:
        return UsageError(
            f"{address} answered {status} and nothing that a gateway of Caudal would say: "
            "is the address right?"
        )
    message = one_line(refusal.message[:_MOST_TOLD])
    match refusal.code:
        case "no_token":
            return UsageError(f"{address} does not know this token: give its own by --token-file")
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
        return msgspec.json.decode(body, type=_Body).error
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
