"""Prometheus metrics of one process: a registry of its own, and an endpoint in a thread.

Without a token the endpoint listens on loopback only, and answers to loopback names only. With a
token it listens everywhere and answers requests that carry it (`Authorization: Bearer ...`).
`/healthz` and `/readyz` need no token: they tell probes nothing but yes or no. The thread answers
although the process's own loop hangs, so it must be told whether that loop runs (`alive`).
"""

import hmac
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, make_wsgi_app

from caudal.errors import UsageError
from caudal.process.loopback import names_loopback

_CONNECTIONS = 32
_CONNECTION_SECONDS = 15.0  # for a whole request and its answer, however slow they are

App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def new_registry() -> CollectorRegistry:
    """Create a registry with the metrics of every process: its memory, CPU time and Python."""
    registry = CollectorRegistry(auto_describe=True)
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return registry


@contextmanager
def serving_metrics(
    registry: CollectorRegistry,
    port: int | None,
    token: str | None = None,
    ready: Callable[[], bool] = lambda: True,
    *,
    alive: Callable[[], bool] = lambda: True,
) -> Iterator[int | None]:
    """Serve metrics on this port during the block. Yield the port (0 takes a free one)."""
    if port is None:
        yield None
        return
    host = "127.0.0.1" if token is None else ""
    app = probed(guarded(make_wsgi_app(registry), token), ready, alive)
    try:
        server = make_server(host, port, app, server_class=_Server, handler_class=_Handler)
    except OSError as error:
        raise UsageError(f"port {port} for metrics cannot be used: {error.strerror}") from error
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def probed(app: App, ready: Callable[[], bool], alive: Callable[[], bool]) -> App:
    """Return the app behind the two questions of probes: is it alive, and can it work?"""

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO")
        if path not in ("/healthz", "/readyz"):
            return app(environ, start)
        is_fine = alive() and (path == "/healthz" or ready())
        status = "200 OK" if is_fine else "503 Service Unavailable"
        start(status, [("Content-Type", "text/plain")])
        return [b"ok\n" if is_fine else b"no\n"]

    return answer


def guarded(app: App, token: str | None) -> App:
    """Return the app behind a check of the token; without a token, for this machine only."""
    wanted = f"Bearer {token}".encode()

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if token is None and not names_loopback(environ.get("HTTP_HOST")):
            start("421 Misdirected Request", [("Content-Type", "text/plain")])
            return [b"without a token this process answers to localhost and 127.0.0.1 only\n"]
        given = environ.get("HTTP_AUTHORIZATION", "").encode("latin-1", "replace")
        if token is None or hmac.compare_digest(given, wanted):
            return app(environ, start)
        start("401 Unauthorized", [("Content-Type", "text/plain"), ("WWW-Authenticate", "Bearer")])
        return [b"send the token of this process\n"]

    return answer


class _Server(ThreadingMixIn, WSGIServer):
    """A server with one thread per connection; number and duration of connections are bounded."""

    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._room = threading.BoundedSemaphore(_CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """See socketserver."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """See socketserver."""
        late = threading.Timer(_CONNECTION_SECONDS, _hang_up, [request])
        late.daemon = True
        late.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            late.cancel()
            self._room.release()


def _hang_up(request: socket.socket) -> None:
    with suppress(OSError):  # it has ended already
        request.shutdown(socket.SHUT_RDWR)


class _Handler(WSGIRequestHandler):
    """A handler without logs that drops silent connections."""

    timeout = 10

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing: a line per scrape is useless."""

    def log_error(self, *args: Any) -> None:
        """Log nothing: a line per broken connection is useless."""
