"""Fetch a source from an HTTP address, with a conditional GET.

Everything is bounded: the bytes, the seconds, the redirects. An answer that ends early, or that is
encoded in a way that was not asked for, is an error and never half a source. Only http and https
are followed, and never from https to http. Messages show an address without its query, which may
contain a secret.
"""

import contextlib
import http.client
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from caudal.series.addresses import SCHEMES, told_address
from caudal.series.errors import SourceError
from caudal.sizes import told_bytes
from caudal.version import __version__

LARGEST_BYTES = 256 << 20
_PIECE_BYTES = 1 << 16
_REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True)
class HttpLimits:
    """How much a fetch may take: bytes, seconds without an answer, seconds in all."""

    bytes: int = LARGEST_BYTES
    idle_seconds: float = 30.0
    seconds: float = 600.0


@dataclass(frozen=True)
class HttpSource:
    """What an address gave. `data` is None if it is still what `etag` named."""

    data: bytes | None = field(repr=False)
    etag: str


def fetch(address: str, etag: str = "", limits: HttpLimits | None = None) -> HttpSource:
    """Return what is at an address, unless it is still what `etag` names. Raises SourceError."""
    limits = limits or HttpLimits()
    deadline = _Deadline(limits.seconds)
    try:
        with deadline, _opened(address, etag, limits, deadline) as response:
            body = _body(response, limits)
            if deadline.is_over:  # which may look like the end of the body
                raise _FetchError
            return HttpSource(body, response.headers.get("ETag", ""))
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == HTTPStatus.NOT_MODIFIED and etag:
            return HttpSource(None, etag)
        raise SourceError(f"{told_address(address)} {_answer(error)}") from error
    except (OSError, http.client.HTTPException, _FetchError) as error:
        raise SourceError(
            f"cannot fetch {told_address(address)}: {_reason(error, deadline, limits)}"
        ) from error


class _FetchError(Exception):
    """The answer of a server cannot be used."""


def _opened(
    address: str, etag: str, limits: HttpLimits, deadline: "_Deadline"
) -> contextlib.AbstractContextManager[http.client.HTTPResponse]:
    opener = urllib.request.OpenerDirector()  # with nothing that opens files
    for handler in (
        urllib.request.ProxyHandler(),
        _PlainHandler(deadline),
        _SecureHandler(deadline),
        _Redirects(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    headers = {"User-Agent": f"caudal/{__version__}", "Accept-Encoding": "identity"}
    if etag:
        headers["If-None-Match"] = etag
    request = urllib.request.Request(address, headers=headers)
    opened: contextlib.AbstractContextManager[http.client.HTTPResponse] = opener.open(
        request, timeout=limits.idle_seconds
    )
    return opened


def _body(response: http.client.HTTPResponse, limits: HttpLimits) -> bytes:
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise _FetchError(f"the server sent it as {encoding}, which was not asked for")
    declared = response.headers.get("Content-Length", "")
    if declared.isdecimal() and int(declared) > limits.bytes:
        raise _too_large(limits)
    body = b"".join(_pieces(response, limits))
    if declared.isdecimal() and len(body) != int(declared):
        raise _FetchError(f"the connection ended after {len(body):,} of {int(declared):,} bytes")
    return body


def _pieces(response: http.client.HTTPResponse, limits: HttpLimits) -> Iterator[bytes]:
    total = 0
    while piece := response.read1(_PIECE_BYTES):
        total += len(piece)
        if total > limits.bytes:
            raise _too_large(limits)
        yield piece


def _too_large(limits: HttpLimits) -> _FetchError:
    return _FetchError(
        f"it is larger than {told_bytes(limits.bytes)}: download it, and ingest it as a file"
    )


def _answer(error: urllib.error.HTTPError) -> str:
    """Return what a server answered instead of a source."""
    if error.code in _REDIRECTS:
        return "redirects too often, in a circle, or to no HTTP address: check the address"
    remedy = "try again later" if error.code >= 500 or error.code == 429 else "check the address"
    phrase = http.client.responses.get(error.code, "")
    return f"answered {' '.join(f'{error.code} {phrase}'.split())}: {remedy}"


def _reason(error: Exception, deadline: "_Deadline", limits: HttpLimits) -> str:
    if deadline.is_over:
        return f"it took longer than {limits.seconds:g} s"
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return f"no answer within {limits.idle_seconds:g} s"
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return str(cause) or type(cause).__name__


class _Deadline:
    """Ends the connections of a fetch when its time is over, even if bytes keep dripping in."""

    def __init__(self, seconds: float) -> None:
        self.is_over = False
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def watch(self, connected: socket.socket) -> None:
        with self._lock:
            self._sockets.append(connected)
        if self.is_over:
            self._end()

    def _end(self) -> None:
        self.is_over = True
        with self._lock:
            for one in self._sockets:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)


class _PlainConnection(http.client.HTTPConnection):
    def __init__(self, deadline: _Deadline, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._deadline = deadline

    def connect(self) -> None:
        super().connect()
        self._deadline.watch(self.sock)


class _SecureConnection(http.client.HTTPSConnection):
    def __init__(self, deadline: _Deadline, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._deadline = deadline

    def connect(self) -> None:
        super().connect()
        self._deadline.watch(self.sock)


class _PlainHandler(urllib.request.HTTPHandler):
    def __init__(self, deadline: _Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(_PlainConnection, self._deadline), req)


class _SecureHandler(urllib.request.HTTPSHandler):
    def __init__(self, deadline: _Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(_SecureConnection, self._deadline), req)


class _Redirects(urllib.request.HTTPRedirectHandler):
    max_redirections = 5

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: Any,
        code: int,
        msg: str,
        headers: Any,
        newurl: str,
    ) -> urllib.request.Request | None:
        scheme = urlsplit(newurl).scheme
        if scheme not in SCHEMES or (req.type == "https" and scheme == "http"):
            raise _FetchError(f"it leads to {told_address(newurl)}, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
