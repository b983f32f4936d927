"""A real HTTP server on loopback that serves bytes with ETags, and misbehaves on request."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[["FileHandler"], None]


@dataclass
class FileServer:
    """What is served, and what was asked: (path, If-None-Match, status)."""

    base: str = ""
    files: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[tuple[str, str, int]] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def statuses(self) -> list[int]:
        return [status for _, _, status in self.asked]


class FileHandler(BaseHTTPRequestHandler):
    files: FileServer

    def do_GET(self) -> None:
        answer = self.files.answers.get(self.path)
        if answer is not None:
            answer(self)
            return
        if self.path not in self.files.files:
            self.send(404, b"<h1>no such page</h1>")
            return
        data, etag = self.files.files[self.path]
        if etag and self.headers.get("If-None-Match") == etag:
            self.send(304, ETag=etag)
        else:
            self.send(200, data, **({"ETag": etag} if etag else {}))

    def send(self, status: int, data: bytes = b"", **headers: str) -> None:
        self.begin(status, **{"Content-Length": str(len(data)), **headers})
        self.wfile.write(data)

    def begin(self, status: int, **headers: str) -> None:
        self.files.asked.append((self.path, self.headers.get("If-None-Match", ""), status))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def file_server() -> Iterator[FileServer]:
    """Serve on a free port of loopback while the context lasts."""
    served = FileServer()
    handler = type("Handler", (FileHandler,), {"files": served})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    served.base = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        served.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()
