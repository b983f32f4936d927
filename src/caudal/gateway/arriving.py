"""Connections as they arrive: counted from their first moment, TLS included.

Rules
1. There is a bound on connections. When it is reached, the oldest one that serves no admitted
   request is closed for the newest: strangers who hold connections push each other out, not those
   who have work here.
2. A TLS handshake has little time, and its connection counts from the start.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Protocol

from caudal.process.certificates import Certificate


class Connection(Protocol):
    """Anything that holds a socket."""

    def is_at_work(self) -> bool:
        """Does it serve a request that was admitted?"""

    def drop(self) -> None:
        """Close it at once."""


class Arrivals:
    """All connections of one server, oldest first. For one loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._all: dict[Connection, None] = {}

    def add(self, connection: Connection) -> None:
        """Count one more; whoever has to leave for it is closed (rule 1)."""
        self._all[connection] = None
        if len(self._all) > self._most:
            idle = (one for one in self._all if not one.is_at_work())
            victim = next(idle, connection)
            self.remove(victim)
            victim.drop()

    def remove(self, connection: Connection) -> None:
        self._all.pop(connection, None)

    def __len__(self) -> int:
        return len(self._all)


class Handshake(asyncio.Protocol):
    """A connection that becomes one of TLS, and then the protocol that it is for."""

    def __init__(
        self,
        make: Callable[[], asyncio.Protocol],
        certificate: Certificate,
        arrivals: Arrivals,
        seconds: float,
    ) -> None:
        self._make = make
        self._certificate = certificate
        self._arrivals = arrivals
        self._seconds = seconds
        self._early = b""  # what came right behind the handshake
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.pause_reading()
        self._arrivals.add(self)
        if not transport.is_closing():
            self._task = asyncio.get_running_loop().create_task(self._shake_hands(transport))

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        self._early += data

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._arrivals.remove(self)

    def is_at_work(self) -> bool:
        return False

    def drop(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def _shake_hands(self, transport: asyncio.Transport) -> None:
        secure: asyncio.Transport | None = None
        with contextlib.suppress(OSError):  # no TLS, not in time, or gone
            secure = await asyncio.get_running_loop().start_tls(
                transport,
                self,
                self._certificate.context(),
                server_side=True,
                ssl_handshake_timeout=self._seconds,
            )
        self._arrivals.remove(self)
        if secure is None:
            transport.abort()
            return
        protocol = self._make()
        secure.set_protocol(protocol)
        protocol.connection_made(secure)
        if self._early and not secure.is_closing():
            protocol.data_received(self._early)
