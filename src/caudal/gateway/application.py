"""The HTTP application: operations behind a guard that knows tokens, rates and refusals.

The guard's order: who asks, how often, is there room, the handler. Whatever is raised on the way
becomes one shape of answer; what was raised after the answer began only ends the connection.
"""

import asyncio
import logging

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from caudal.errors import CaudalError
from caudal.gateway import describing
from caudal.gateway.bodies import JSON
from caudal.gateway.operations import Operation, Room
from caudal.gateway.refusals import Refusal, later, refusal_of
from caudal.gateway.routes import OPERATIONS
from caudal.gateway.service import Call, Service
from caudal.gateway.tokens import NOBODY
from caudal.process.logs import fields

_log = logging.getLogger(__name__)
_CODES = {
    404: ("no_path", "there is nothing here: see /openapi.json"),
    405: ("no_method", "this path does not take that method: see Allow"),
}


def make_application(service: Service) -> Starlette:
    """The application, as a server runs it."""
    paths: dict[str, dict[str, Operation]] = {}
    for one in OPERATIONS:
        paths.setdefault(one.path, {})[one.method] = one
    routes = [
        Route(path, endpoint=Guard(service, methods), methods=list(methods))
        for path, methods in paths.items()
    ]
    description = msgspec.json.encode(describing.describe(OPERATIONS))

    async def openapi(request: Request) -> Response:
        del request
        return Response(description, media_type=JSON)

    routes.append(Route(describing.PATH, openapi))
    for route in routes:
        if route.methods:
            route.methods.discard("HEAD")  # a stream without a body is of no use to anyone
    app = Starlette(routes=routes, exception_handlers={HTTPException: _wrong_path})
    app.router.redirect_slashes = False
    return app


async def _wrong_path(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code, message = _CODES.get(error.status_code, ("bad_request", ""))
    refusal = Refusal(error.status_code, code, message or str(error.detail), headers=error.headers)
    return _response(refusal, None)


def _response(refusal: Refusal, job: str | None) -> Response:
    return Response(refusal.body(job), refusal.status, refusal.headers, media_type=JSON)


class Guard:
    """The operations of one path."""

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
        request = Request(scope, receive)
        job = scope.get("path_params", {}).get("job")
        try:
            await self._guarded(operation, request, sending)
        except Exception as error:
            refusal = refusal_of(error)
            if refusal.status == 500 or sending.status:
                known = isinstance(error, CaudalError | TimeoutError)
                _log.error(
                    "a request failed",
                    exc_info=None if known else error,
                    extra=fields(job=job, path=operation.path, reason=str(error) or None),
                )
            if not sending.status:  # else the server ends the connection of an answer without end
                await _response(refusal, job)(scope, receive, sending)

    async def _guarded(self, operation: Operation, request: Request, sending: "_Sending") -> None:
        service = self._service
        _check_head(request, service.limits.head_bytes)
        if operation.room is Room.OPEN:
            response = await operation.handler(service, Call(request, NOBODY))
            await response(request.scope, request.receive, sending)
            return
        owner = service.tokens.owner(request.headers.get("authorization"))
        if owner is None:
            headers = {"www-authenticate": "Bearer"}
            message = "send a token that this gateway knows: Authorization: Bearer TOKEN"
            raise Refusal(401, "no_token", message, headers=headers)
        if wait := service.rates.take(owner, asyncio.get_running_loop().time()):
            raise later("rate_limited", "too many requests a second: slow down", wait)
        places = service.streams if operation.room is Room.STREAM else service.requests
        with places.one():
            response = await operation.handler(service, Call(request, owner))
            await response(request.scope, request.receive, sending)


def _check_head(request: Request, most: int) -> None:
    """A head that came in one piece is not yet measured."""
    size = sum(len(name) + len(value) for name, value in request.scope["headers"])
    if size + len(request.url.path) + len(request.url.query) > most:
        raise Refusal(431, "too_large", f"the head of a request has at most {most} bytes")


class _Sending:
    """`send`, with a bound on how long a reader may take nothing; knows what was sent."""

    def __init__(self, send: Send, seconds: float) -> None:
        self._send = send
        self._seconds = seconds
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        async with asyncio.timeout(self._seconds):
            await self._send(message)
