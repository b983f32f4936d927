"""Refusals: one shape of error answer, and one mapping from errors to HTTP statuses."""

from collections.abc import Mapping

import msgspec

from caudal.broker.port import BrokerError
from caudal.datasets.cluster_place import DatasetNotFoundError
from caudal.errors import (
    ApplicationError,
    CaudalError,
    DataError,
    FormatError,
    MissingPackageError,
    OtherVersionError,
    QueryError,
    StoreError,
    StoreFullError,
    UsageError,
)
from caudal.formats.outcomes import Outcome
from caudal.jobs.interfaces import (
    BusyError,
    ConflictError,
    GoneError,
    NotReadyError,
    UnknownNameError,
)

RETRY_SECONDS = 1


class RefusalReason(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reason of a refusal: `code` for programs, `message` for people."""

    code: str
    message: str
    job: str | None = None
    outcome: Outcome | None = None
    quota: str | None = None  # name of the quota if `code` is `over_quota`


class ErrorBody(msgspec.Struct, frozen=True):
    """The body of every error answer."""

    error: RefusalReason


class Refusal(Exception):  # noqa: N818, it is an answer
    """An error answer on its way to the client."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        outcome: Outcome | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})
        self.outcome = outcome
        self.quota: str | None = None

    def body(self, job: str | None) -> bytes:
        reason = RefusalReason(
            self.code, str(self), job=job, outcome=self.outcome, quota=self.quota
        )
        return msgspec.json.encode(ErrorBody(reason))


def later(code: str, message: str, seconds: int = RETRY_SECONDS, status: int = 429) -> Refusal:
    """Return a refusal that asks the client to repeat the request after `seconds`."""
    return Refusal(status, code, message, headers={"retry-after": str(seconds)})


def refusal_of(error: Exception) -> Refusal:
    """Return the refusal for an error."""
    match error:
        case Refusal():
            return error
        case BusyError():
            return later("busy", str(error))
        case UnknownNameError():
            return Refusal(404, f"no_{error.kind}", str(error))
        case ConflictError():
            return Refusal(409, "conflict", str(error))
        case NotReadyError():
            return Refusal(404, "not_ready", str(error))
        case GoneError() if error.outcome is not None:
            return Refusal(410, "ended", str(error), outcome=error.outcome)
        case GoneError():
            return Refusal(404, "no_job", str(error))
        case DatasetNotFoundError():
            return Refusal(404, "no_dataset", str(error))
        case UsageError():
            return Refusal(400, "bad_request", str(error))
        case ApplicationError() | QueryError() | DataError() | MissingPackageError():
            return Refusal(422, "cannot_plan", str(error))
        case StoreFullError():
            full = "the store of the cluster is full; free some space"
            return later("store_full", full, seconds=2, status=503)
        case StoreError() | BrokerError():
            return later("unavailable", str(error), seconds=2, status=503)
        case OtherVersionError():
            return later("unavailable", str(error), seconds=2, status=503)
        case FormatError():
            return Refusal(500, "damaged", str(error))
        case CaudalError():
            return Refusal(400, "bad_request", str(error))
    return Refusal(500, "bug", "this is a bug in Caudal; the gateway's log says more")
