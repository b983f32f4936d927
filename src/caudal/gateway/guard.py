"""The guard of each path. It checks the token, the rights, the rate and free places, in this
order, and then calls the handler. Probes pass without rate and place.

Every exception becomes an answer of one shape. An exception after the answer has begun only closes
the connection.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from caudal.errors import BrokerError, CaudalError, StoreError
from caudal.formats.quotas import Quota
from caudal.gateway.operations import Operation, Room
from caudal.gateway.rates import neighbours
from caudal.gateway.refusals import Refusal, later, refusal_of
from caudal.gateway.room import ASKING
from caudal.gateway.send_refusal import respond
from caudal.gateway.service import RequestCall, Service
from caudal.gateway.tokens import STRANGER, Caller
from caudal.gateway.visits import visit_of
from caudal.jobs.requests import check_job_id
from caudal.process.logs import fields

_log = logging.getLogger(__name__)


class Guard:
    """ASGI endpoint for the operations of one path."""

    def __init__(self, service: Service, operations: dict[str, Operation]) -> None:
        self._service = service
        self._operations = operations

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        operation = self._operations[scope["method"]]
        figures = self._service.figures
        sending = _Sending(send, self._service.limits.send_seconds)
        begun = asyncio.get_running_loop().time()
        with figures.under_way.track_inprogress():
            try:
                await self._answer(operation, scope, receive, sending)
            finally:
                names = operation.method, operation.path
                figures.requests.labels(*names, str(sending.status)).inc()
                figures.answered += 1
                if operation.room is not Room.STREAM:
                    seconds = asyncio.get_running_loop().time() - begun
                    figures.seconds.labels(*names).observe(seconds)

    async def _answer(
        self, operation: Operation, scope: Scope, receive: Receive, sending: "_Sending"
    ) -> None:
        request, visit = Request(scope, receive), visit_of(scope)
        parts = scope.get("path_params", {})
        visit.action, visit.job, visit.query = (
            operation.action,
            parts.get("job"),
            parts.get("query"),
        )
        visit.dataset = parts.get("dataset")
        try:
            await self._guarded(operation, request, sending)
        except Exception as error:
            refusal = refusal_of(error)
            if isinstance(error, StoreError | BrokerError) and refusal.status == 503:
                self._service.outages.note(error, asyncio.get_running_loop().time())
            if refusal.status == 500 or sending.status:
                known = isinstance(error, CaudalError | TimeoutError)
                _log.error(
                    "a request failed",
                    exc_info=None if known else error,
                    extra=fields(job=visit.job, path=operation.path, reason=str(error) or None),
                )
            if not sending.status:  # otherwise the server closes the connection
                await respond(refusal, scope, receive, sending)

    async def _guarded(self, operation: Operation, request: Request, sending: "_Sending") -> None:
        service, visit = self._service, visit_of(request.scope)
        caller = self._caller(operation, request)
        ASKING.set(caller.owner)
        visit.owner = caller.owner or None
        if not operation.allows(caller.rights):
            raise Refusal(403, "not_allowed", f"this token lacks the right `{operation.right}`")
        self._require_rate(operation, request, caller)
        with self._place(operation, caller):
            if caller is not STRANGER:
                visit.admit(caller.owner)
            call = RequestCall(request, caller, await self._about(request, caller))
            response = await operation.handler(service, call)
            await response(request.scope, request.receive, sending)

    def _require_rate(self, operation: Operation, request: Request, caller: Caller) -> None:
        service, now = self._service, asyncio.get_running_loop().time()
        if operation.room is Room.PROBE:
            return
        if caller is STRANGER:
            address = request.client.host if request.client else ""
            wait = service.strangers.take(neighbours(address), now)
        else:
            wait = service.rates.take(caller.owner, now)
        if wait:
            raise later("rate_limited", "too many requests a second: slow down", wait)

    @contextmanager
    def _place(self, operation: Operation, caller: Caller) -> Iterator[None]:
        """Hold one of the owner's places and one of the gateway's places during the block."""
        service = self._service
        if operation.room is Room.PROBE:
            yield
            return
        if operation.room is Room.OPEN:
            with service.watchers.one():
                yield
            return
        is_stream = operation.room is Room.STREAM
        quota = Quota.STREAMS if is_stream else Quota.REQUESTS
        places = service.streams if is_stream else service.requests
        with service.shares.holding(caller.owner, quota), places.one():
            yield

    def _caller(self, operation: Operation, request: Request) -> Caller:
        if not operation.room.needs_token:
            return STRANGER
        return self._service.tokens.caller(request.headers.get("authorization"))

    async def _about(self, request: Request, caller: Caller) -> str | None:
        """Return the owner of the job if an admin asks: admins may read and end jobs of others."""
        job = request.path_params.get("job")
        if job is None or not caller.is_admin or request.method not in ("GET", "DELETE"):
            return None
        return await self._service.threads.run(_owner_of, self._service, str(job))


def _owner_of(service: Service, job: str) -> str | None:
    check_job_id(job)
    job_run = service.ports.job_runs.open(job)
    return job_run.job.owner if job_run else None


class _Sending:
    """`send` with a time limit for a reader that takes no data; records the status sent."""

    def __init__(self, send: Send, seconds: float) -> None:
        self._send = send
        self._seconds = seconds
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        async with asyncio.timeout(self._seconds):
            await self._send(message)
