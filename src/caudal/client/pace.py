"""Gateways that drip: what comes or goes too slowly counts as no answer.

Silence alone is no measure: one byte now and then is never silent, and takes for ever.

Rules
1. Of every time of silence that passes, `LEAST_BYTES` must have come or gone; or the request is
   over. The whole may take as long as it likes.
2. What comes before the body, interim answers too, is bounded.
3. Streams of events are quiet by nature. They are paced up to their first event; then a line that
   was begun must go on at the same pace (`bodies.lines_of`).

The pace is that of the thread's request: every read and write of a socket goes by it.
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
    """How much came and went in this time of silence. A pace that is missed is a time-out."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since = now()
        self._moved = 0
        self._head: int | None = 0  # bytes that came before the body

    def left(self) -> float:
        """Seconds until enough must have moved."""
        passed = now() - self._since
        if passed >= self._seconds:
            if self._moved < LEAST_BYTES:
                raise httpcore.ReadTimeout(f"too slow: {self._moved} bytes in {passed:.0f} seconds")
            self.begin()
            passed = 0.0
        return self._seconds - passed

    def begin(self) -> None:
        """Count anew from now on."""
        self._since, self._moved = now(), 0

    def note(self, size: int) -> None:
        """So much came or went."""
        self._moved += size

    def note_read(self, size: int) -> None:
        self.note(size)
        if self._head is not None:
            self._head += size
            if self._head > MOST_HEAD_BYTES:
                raise httpcore.RemoteProtocolError("too much came before an answer")

    def end_of_head(self) -> None:
        """From now on the body comes."""
        self._head = None


def now() -> float:
    return time.monotonic()


_PACE: ContextVar[Pace | None] = ContextVar("_PACE", default=None)


@contextmanager
def paced(seconds: float) -> Iterator[Pace]:
    """Everything that this thread sends and receives in the block keeps to one pace."""
    pace = Pace(seconds)
    token = _PACE.set(pace)
    try:
        yield pace
    finally:
        _PACE.reset(token)


def pace_sockets(client: httpx.Client) -> None:
    """Make every connection of a client keep to the pace. httpx takes no network backend, and
    httpcore has no other place for it."""
    for transport in (client._transport, *client._mounts.values()):
        if isinstance(transport, httpx.HTTPTransport):
            pool: Any = transport._pool
            pool._network_backend = _Backend(pool._network_backend)


class _Backend(httpcore.NetworkBackend):
    """A backend whose connections are paced."""

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
    """A connection whose reads and writes keep to the pace of the thread's request."""

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
        """See httpcore. Whose own loop lets a reader take as little at a time as it likes."""
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
