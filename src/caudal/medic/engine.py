"""The Docker engine, asked over its Unix socket in HTTP: no program is started for a question.

Every refusal of the engine becomes an EngineError with the engine's own words. Whoever may use the
socket is root on the machine, so only medics and administrators have it.
"""

import json
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from urllib.parse import quote, urlencode

from caudal.errors import EngineError, UsageError

DEFAULT_SOCKET = "/var/run/docker.sock"
_SECONDS = 60.0
_ANSWER_MOST = 16 << 20
_LINE_MOST = 1 << 20
_HEADER_BYTES = 8  # before each piece of a log: the stream's number and the piece's length

Query = Mapping[str, str | int]


class DockerEngine:
    """One engine. Safe for several threads: each request has its own connection."""

    def __init__(self, path: str = DEFAULT_SOCKET) -> None:
        self.path = path

    @classmethod
    def of(cls, address: str | None) -> "DockerEngine":
        """Return the engine at an address such as that of DOCKER_HOST; None: the usual socket."""
        if not address:
            return cls()
        if not address.startswith("unix://"):
            raise UsageError(f"DOCKER_HOST={address}: only unix:// sockets are supported")
        return cls(address.removeprefix("unix://"))

    def get(self, path: str, query: Query | None = None) -> object | None:
        """Return the answer to a question; None if the engine knows no such thing."""
        with self._asked("GET", path, query) as answer:
            return None if answer.status == 404 else _decoded(answer)

    def post(
        self,
        path: str,
        query: Query | None = None,
        body: object = None,
        *,
        seconds: float = _SECONDS,
        fine: tuple[int, ...] = (),
    ) -> bool:
        """Order something. Return whether it changed anything: False for an answer in `fine`."""
        with self._asked("POST", path, query, body, seconds=seconds) as answer:
            if answer.status in (304, *fine):
                return False
            _decoded(answer)
            return True

    def delete(self, path: str, query: Query | None = None) -> None:
        """Remove something; nothing happens if it does not exist."""
        with self._asked("DELETE", path, query) as answer:
            if answer.status != 404:
                _decoded(answer)

    def lines(self, path: str, query: Query, seconds: float | None) -> Iterator[bytes]:
        """Yield the lines of an answer as they come, until it ends.

        Raise EngineError if none comes in that many seconds; None waits for ever.
        """
        with self._asked("GET", path, query, seconds=seconds) as answer:
            _require_fine(answer)
            while line := answer.readline(_LINE_MOST):
                yield line

    def log(self, path: str, query: Query) -> Iterator[bytes]:
        """Yield the pieces of a container's log, without the headers of the engine."""
        with self._asked("GET", path, query, seconds=None) as answer:
            _require_fine(answer)
            while len(header := answer.read(_HEADER_BYTES)) == _HEADER_BYTES:
                yield answer.read(int.from_bytes(header[4:], "big"))

    @contextmanager
    def _asked(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: object = None,
        *,
        seconds: float | None = _SECONDS,
    ) -> Iterator[HTTPResponse]:
        connection = _UnixConnection(self.path, seconds)
        asked = f"{quote(path)}?{urlencode(query)}" if query else quote(path)
        data = None if body is None else json.dumps(body)
        try:
            with suppress(BrokenPipeError):  # it has answered before it read everything
                connection.request(method, asked, data, {"Content-Type": "application/json"})
            yield connection.getresponse()
        except (OSError, HTTPException) as error:
            raise EngineError(
                f"the Docker engine at {self.path} does not answer: {error}; is it running, and "
                "may this user open its socket?"
            ) from error
        finally:
            connection.close()


class _UnixConnection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, seconds: float | None) -> None:
        super().__init__("docker", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        """See http.client."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _decoded(answer: HTTPResponse) -> object:
    _require_fine(answer)
    data = answer.read(_ANSWER_MOST)
    return json.loads(data) if data.strip() else None


def _require_fine(answer: HTTPResponse) -> None:
    if answer.status < 300:
        return
    data = answer.read(_ANSWER_MOST)
    try:
        words = json.loads(data)["message"]
    except (ValueError, KeyError, TypeError):
        words = data.decode("utf-8", "replace")
    raise EngineError(f"the Docker engine refused ({answer.status}): {words}")


def whole_lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield the lines of pieces that end anywhere; the last one even if it is not complete."""
    begun = b""
    for piece in pieces:
        *lines, begun = (begun + piece).split(b"\n")
        yield from (line.decode("utf-8", "replace") for line in lines)
    if begun:
        yield begun.decode("utf-8", "replace")
