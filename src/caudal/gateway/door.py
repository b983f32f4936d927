"""Checks that every request passes first, whatever its path, and the audit line of its answer.

Rules
1. A request with both Transfer-Encoding and Content-Length is refused and its connection closed:
   two servers in a row could read it as two different requests.
2. A gateway without tokens answers only requests whose Host is a loopback name (process/loopback).
3. The size of a head is checked before anything else is done with it.
4. Every answer passes here, so the audit log misses none. The line is written before the answer is
   sent, so everything that was handed out is on record. Input that is not HTTP never comes here
   (protocol.py).
5. A page may go on with another gateway than the one that served it. Its question before a request
   is answered here, and its requests get the permission that browsers ask for (peers.py).
6. A page of another site changes nothing. A browser sends some requests, such as a POST without a
   content type, without any question before, and so without a permission; but it says from where.
   What is no program's, no page's of this gateway and none of its cluster, may only read: without
   a permission, the browser keeps the answer from the page.
7. Every answer names the version of Caudal: during an upgrade, gateways of two versions answer.
"""

from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from caudal.gateway.refusals import Refusal
from caudal.gateway.send_refusal import respond
from caudal.gateway.service import Service
from caudal.gateway.visits import visit_of
from caudal.process.loopback import names_loopback
from caudal.version import __version__

_CLOSE = {"connection": "close"}
_READING = ("GET", "HEAD", "OPTIONS")
_FOREIGN = (
    "this request comes from a page of another site, which may change nothing here: use a page of "
    "this gateway; if it is one, let the proxy between pass on the header Host"
)


class Door:
    """The middleware around all routes."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        request = Request(scope)
        origin, is_question = request.headers.get("origin"), scope["method"] == "OPTIONS"
        granted = self._service.peers.permission(scope["scheme"], origin, asked=is_question)

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._note(scope, message["status"])
                headers = MutableHeaders(scope=message)
                headers["caudal-version"] = __version__
                _permit(headers, granted)
            await send(message)

        try:
            self._check(request)
            if scope["method"] not in _READING and not granted and _is_foreign(request.headers):
                raise Refusal(403, "wrong_origin", _FOREIGN)
            if is_question and granted:
                await Response(status_code=204)(scope, receive, noting)
                return
        except Refusal as refusal:
            await respond(refusal, scope, receive, noting)
        else:
            await self._app(scope, receive, noting)

    def _note(self, scope: Scope, status: int) -> None:
        client = scope.get("client")
        address = client[0] if client else None
        path = scope["path"]
        self._service.audit.note(visit_of(scope), scope["method"], path, status, address)

    def _check(self, request: Request) -> None:
        headers, most = request.headers, self._service.limits.head_bytes
        size = sum(len(name) + len(value) for name, value in request.scope["headers"])
        if size + len(request.url.path) + len(request.url.query) > most:
            raise Refusal(431, "too_large", f"the head of a request may have at most {most} bytes")
        if "transfer-encoding" in headers and "content-length" in headers:
            message = "send Transfer-Encoding or Content-Length, not both"
            raise Refusal(400, "bad_request", message, headers=_CLOSE)
        if not self._service.tokens.required and not names_loopback(headers.get("host")):
            message = "without tokens this gateway answers to localhost and 127.0.0.1 only"
            raise Refusal(421, "wrong_host", message, headers=_CLOSE)


def _is_foreign(headers: Headers) -> bool:
    """Return whether a browser sent this for a page that another server served (rule 6).

    Pages cannot change these two headers. Older browsers send only `Origin`, programs neither. A
    proxy may end TLS, so the scheme says nothing.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site in ("same-origin", "same-site", "cross-site"):
        return site != "same-origin"
    if origin is None:
        return False
    _, is_origin, place = origin.partition("://")
    return not is_origin or place.lower() != headers.get("host", "").lower()


def _permit(headers: MutableHeaders, granted: Mapping[str, str]) -> None:
    """Add a permission, which is for one origin only."""
    headers.update(granted)
    if granted:
        headers.add_vary_header("origin")
