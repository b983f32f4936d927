"""A gateway that is not what it seems: a real server on loopback, before a real gateway.

It passes requests on, and spoils the answers to some of them as a test wants. What it sends without
end, it sends until the client has had enough.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

PIECE = 1 << 16


@dataclass
class Spoilt:
    """An answer: its true body, or another one; `forever` is sent behind it again and again.

    `announced` is its Content-Length; without one it is chunked. What is `raw` has no head of HTTP
    but the one that its body begins with.
    """

    body: bytes
    status: int = 200
    forever: bytes = b""
    announced: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bool = False


Spoil = Callable[[str, bytes], Spoilt | None]  # path and true body -> what is sent in its place


def fair(path: str, body: bytes) -> Spoilt | None:
    """Everything is passed on as it is."""
    del path, body
    return None


class Hostile:
    """Where it listens, what it does, and how much it got rid of."""

    def __init__(self, gateway: str) -> None:
        self.gateway = gateway
        self.spoil: Spoil = fair
        self.asked: list[str] = []
        self.sent = 0  # bytes of spoilt bodies
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hostile = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Nobody reads it."""

            def do_GET(self) -> None:
                hostile.answer(self)

            do_PUT = do_DELETE = do_GET  # noqa: N815

        return Handler

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Pass a request on, and send its answer or a spoilt one."""
        size = int(handler.headers.get("content-length", 0))
        headers = {name: handler.headers[name] for name in ("accept", "content-type")
                   if name in handler.headers}  # fmt: skip
        self.asked.append(handler.path)
        true = httpx.request(
            handler.command,
            self.gateway + handler.path,
            content=handler.rfile.read(size),
            headers=headers,
            timeout=60,
        )
        spoilt = self.spoil(handler.path, true.content) if true.is_success else None
        handler.close_connection = True
        try:
            self._send(handler, spoilt or Spoilt(true.content, true.status_code))
        except (BrokenPipeError, ConnectionResetError):
            return  # the client has had enough

    def _send(self, handler: BaseHTTPRequestHandler, what: Spoilt) -> None:
        if what.raw:
            for piece in _pieces(what):
                handler.wfile.write(piece)
                self.sent += len(piece)
        handler.send_response(what.status)
        for name, value in what.headers.items():
            handler.send_header(name, value)
        if what.announced is None:
            handler.send_header("Transfer-Encoding", "chunked")
        else:
            handler.send_header("Content-Length", str(what.announced))
        handler.send_header("Connection", "close")
        handler.end_headers()
        for piece in _pieces(what):
            chunk = piece if what.announced is not None else b"%x\r\n%b\r\n" % (len(piece), piece)
            handler.wfile.write(chunk)
            self.sent += len(piece)
        if what.announced is None:
            handler.wfile.write(b"0\r\n\r\n")


def _pieces(what: Spoilt) -> Iterator[bytes]:
    for begin in range(0, len(what.body), PIECE):
        yield what.body[begin : begin + PIECE]
    while what.forever:
        yield what.forever


@contextmanager
def hostile(gateway: str) -> Iterator[Hostile]:
    made = Hostile(gateway)
    try:
        yield made
    finally:
        made.close()
