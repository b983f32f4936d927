"""A proxy before an HTTP server that damages chosen answers: for clients of S3.

Faults are planned for the next PUTs, one each; when the plan is used up, everything passes. GET and
HEAD always pass unless `away` is set, since a client settles a doubtful PUT by looking.
"""

import http.client
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, SimpleQueue
from threading import Thread
from urllib.parse import urlsplit


class Fault(Enum):
    """What happens to one PUT."""

    NONE = "it passes"
    DONE_BUT_503 = "the server does it, the client hears 503"
    DONE_BUT_CUT = "the server does it, the connection is cut instead of an answer"
    HALF_ANSWER = "the server does it, the connection is cut within the answer"
    NOT_DONE_503 = "the server never sees it, the client hears 503"
    NOT_DONE_CUT = "the server never sees it, the connection is cut"


DONE = {Fault.NONE, Fault.DONE_BUT_503, Fault.DONE_BUT_CUT, Fault.HALF_ANSWER}


class FaultProxy(ThreadingHTTPServer):
    """Stands before the server at `upstream`."""

    daemon_threads = True

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = urlsplit(upstream).netloc
        self.endpoint = f"http://127.0.0.1:{self.server_address[1]}"
        self.away = False
        self.gets = 0
        self.puts = 0
        self._plan: SimpleQueue[Fault] = SimpleQueue()

    def plan(self, faults: Iterable[Fault]) -> None:
        """These faults for the next PUTs."""
        for fault in faults:
            self._plan.put(fault)

    def next_fault(self) -> Fault:
        self.puts += 1
        try:
            return self._plan.get_nowait()
        except Empty:
            return Fault.NONE


@contextmanager
def proxy_before(upstream: str) -> Iterator[FaultProxy]:
    """A running proxy, stopped at the end."""
    with FaultProxy(upstream) as proxy:
        thread = Thread(target=proxy.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FaultProxy

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = self.server.next_fault()
        answer = self._ask(body) if fault in DONE else None
        if self.server.away or fault in {Fault.NOT_DONE_503, Fault.DONE_BUT_503}:
            self._answer(503, [], b"")
        elif fault in {Fault.NOT_DONE_CUT, Fault.DONE_BUT_CUT} or answer is None:
            self.close_connection = True
        elif fault is Fault.HALF_ANSWER:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nETag: ")
            self.close_connection = True
        else:
            self._answer(*answer)

    def do_GET(self) -> None:
        self.server.gets += 1
        self._pass_on()

    def do_HEAD(self) -> None:
        self._pass_on()

    def do_DELETE(self) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        if self.server.away:
            self._answer(503, [], b"")
        else:
            self._answer(*self._ask(b""))

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(self.server.upstream, timeout=30)
        try:
            connection.request(self.command, self.path, body or None, dict(self.headers.items()))
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in {"content-length", "connection", "transfer-encoding"}:
                self.send_header(name, value)
        length = dict(headers).get("Content-Length", "0") if self.command == "HEAD" else len(body)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
