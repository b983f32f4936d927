"""A server that answers as a Docker engine does about one container, and may refuse."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from caudal.medic.engine import DockerEngine

_REFUSAL = b'{"message":"OCI runtime create failed: no space left on device"}'


def _nothing() -> None:
    """What happens before a start, unless a test says more."""


@dataclass
class ToldEngine:
    """The container, what was ordered, and what a test has arranged."""

    engine: DockerEngine
    container: str
    status: str = "exited"
    refuses_to_start: bool = False
    before_start: Callable[[], None] = _nothing
    logs: list[bytes] = field(default_factory=list)  # one for each time that it is asked
    ordered: list[str] = field(default_factory=list)
    log_queries: list[dict[str, list[str]]] = field(default_factory=list)

    def inspected(self) -> dict[str, Any]:
        """What it says of the container."""
        begun, ended = "2026-11-16T12:00:01Z", "2026-11-16T12:00:02Z"
        return {
            "Created": "2026-11-16T12:00:00Z",
            "Image": "sha256:1",
            "Config": {"Image": "caudal"},
            "State": {"Status": self.status, "StartedAt": begun, "FinishedAt": ended},
        }

    def obey(self, verb: str) -> tuple[int, bytes]:
        """Carry out an order about the container."""
        self.ordered.append(verb)
        if verb == "start":
            self.before_start()
            if self.refuses_to_start:
                return 500, _REFUSAL
        self.status = "running" if verb == "start" else "exited"
        return 204, b""


@contextmanager
def told_engine(folder: Path, container: str) -> Iterator[ToldEngine]:
    """Serve it on a Unix socket in this folder."""
    path = str(folder / "engine.sock")
    told = ToldEngine(DockerEngine(path), container)
    with ThreadingUnixStreamServer(path, _handler(told)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield told
        server.shutdown()
        thread.join()


class EngineAnswers(BaseHTTPRequestHandler):
    """How a server at a Unix socket answers."""

    def _answer(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *arguments: object) -> None:
        pass


def _handler(told: ToldEngine) -> type[BaseHTTPRequestHandler]:
    class Answers(EngineAnswers):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            if asked.path.endswith("/logs"):
                told.log_queries.append(parse_qs(asked.query))
                lines = told.logs.pop(0) if told.logs else None
                self._answer(200, _frame(lines)) if lines is not None else self._answer(404, b"{}")
            elif asked.path == f"/containers/{told.container}/json":
                self._answer(200, json.dumps(told.inspected()).encode())
            elif asked.path.startswith("/images/"):
                self._answer(200, b'{"Id": "sha256:1", "Config": {}}')
            else:
                self._answer(200, b"[]")

        def do_POST(self) -> None:
            self._answer(*told.obey(urlsplit(self.path).path.rpartition("/")[2]))

    return Answers


def _frame(lines: bytes) -> bytes:
    """Pieces of a log have the number of the stream and their length before them."""
    return b"\x01\0\0\0" + len(lines).to_bytes(4, "big") + lines
