"""A minimum pace for connections: data that moves too slowly counts as no answer.

A limit on silence is not enough: a gateway that sends one byte now and then is never silent and
never finishes.

Rules
1. In every interval (the time-out of the request) at least `LEAST_BYTES` must be sent or received;
   otherwise the request fails. The total time is not limited.
2. The data before the body, interim answers included, is bounded.
3. Event streams may be silent. The pace applies until their first event; after that, a line that
   has begun must continue at the same pace (`bodies.lines_of`).

The pace belongs to the current thread's request and applies to every read and write of its socket.
"""

import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httpcore
import httpx

LEAST_BYTES = 64 << 10
MOST_HEAD_BYTES = 1 << 20


class Pace:
    """The bytes moved in the current interval. A pace that is too slow raises a time-out."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since = now()
        self._moved = 0
        self._head: int | None = 0  # bytes received before the body; None: the body has begun

    def left(self) -> float:
        """Return the seconds until enough bytes must have moved."""
        passed = now() - self._since
        if passed >= self._seconds:
            if self._moved < LEAST_BYTES:
                raise httpcore.ReadTimeout(f"too slow: {self._moved} bytes in {passed:.0f} seconds")
            self.begin()
            passed = 0.0
        return self._seconds - passed

    def begin(self) -> None:
        """Start a new interval."""
        self._since, self._moved = now(), 0

    def note(self, size: int) -> None:
        """Count bytes that were sent or received."""
        self._moved += size

    def note_read(self, size: int) -> None:
        self.note(size)
        if self._head is not None:
            self._head += size
            if self._head > MOST_HEAD_BYTES:
                raise httpcore.RemoteProtocolError("too much data before the answer")

    def end_of_head(self) -> None:
        """Note that the body begins."""
        self._head = None


def now() -> float:
    return time.monotonic()


_PACE: ContextVar[Pace | None] = ContextVar("_PACE", default=None)


@contextmanager
def paced(seconds: float) -> Iterator[Pace]:
    """Apply one pace to everything that this thread sends and receives in the block."""
    pace = Pace(seconds)
    token = _PACE.set(pace)
    try:
        yield pace
    finally:
        _PACE.reset(token)


def pace_sockets(client: httpx.Client) -> None:
    """Make every connection of a client keep the pace.

    httpx takes no network backend, so this sets private attributes of httpx and httpcore.
    """
    for transport in (client._transport, *client._mounts.values()):
        if isinstance(transport, httpx.HTTPTransport):
            pool: Any = transport._pool
            pool._network_backend = _Backend(pool._network_backend)


class _Backend(httpcore.NetworkBackend):
    """A network backend that creates paced connections."""

    def __init__(self, inner: httpcore.NetworkBackend) -> None:
        self._inner = inner

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """See httpcore."""
        return _Stream(self._inner.connect_tcp(host, port, timeout, local_address, socket_options))


class _Stream(httpcore.NetworkStream):
    """A connection whose reads and writes keep the pace of the thread's request."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """See httpcore."""
        pace = _PACE.get()
        if pace is None:
            return self._inner.read(max_bytes, timeout)
        data = self._inner.read(max_bytes, pace.left())
        pace.note_read(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """See httpcore. Its own loop would let a reader take any small amount at a time."""
        pace, socket = _PACE.get(), self._inner.get_extra_info("socket")
        if pace is None or socket is None:
            self._inner.write(buffer, timeout)
            return
        rest = memoryview(buffer)
        while rest:
            try:
                socket.settimeout(pace.left())
                sent = socket.send(rest)
            except TimeoutError as error:
                raise httpcore.WriteTimeout(str(error)) from error
            except OSError as error:
                raise httpcore.WriteError(str(error)) from error
            pace.note(sent)
            rest = rest[sent:]

    def close(self) -> None:
        """See httpcore."""
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        """See httpcore."""
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        """See httpcore."""
        return self._inner.get_extra_info(info)
