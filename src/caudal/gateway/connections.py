"""Bounds on connections. A connection counts from its first moment, TLS handshake included.

Rules
1. The number of connections is bounded. At the bound, a new connection closes the oldest one that
   has no known owner, so unknown clients only displace each other. If there is none, the owner
   with the most connections loses its oldest idle one. A connection that serves an admitted
   request stays open.
2. A TLS handshake has a short time limit, and its connection counts from the start.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Protocol

from caudal.process.certificates import Certificate


class Connection(Protocol):
    """Anything that holds a socket."""

    def is_at_work(self) -> bool:
        """Return whether it is serving an admitted request."""

    def drop(self) -> None:
        """Close the connection at once."""


class Arrivals:
    """All connections of one server by owner, oldest first. For one event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._owners: dict[Connection, str | None] = {}  # None: no known owner
        self._of: dict[str | None, dict[Connection, None]] = {}

    def add(self, connection: Connection) -> None:
        """Count one more connection; close another one if there are too many (rule 1)."""
        self._put(connection, None)
        if len(self._owners) > self._most:
            victim = self._victim(connection)
            self.remove(victim)
            victim.drop()

    def know(self, connection: Connection, owner: str) -> None:
        """Record the owner of the request that was admitted on this connection."""
        if self._owners.get(connection, owner) != owner:
            self.remove(connection)
            self._put(connection, owner)

    def remove(self, connection: Connection) -> None:
        if connection in self._owners:
            owner = self._owners.pop(connection)
            del self._of[owner][connection]
            if not self._of[owner]:
                del self._of[owner]

    def __len__(self) -> int:
        return len(self._owners)

    def _put(self, connection: Connection, owner: str | None) -> None:
        self._owners[connection] = owner
        self._of.setdefault(owner, {})[connection] = None

    def _victim(self, newest: Connection) -> Connection:
        oldest = next(iter(self._of[None]))
        if oldest is not newest:
            return oldest
        owners = sorted(self._of.items(), key=lambda one: -len(one[1]))
        known = (one for owner, held in owners if owner is not None for one in held)
        return next((one for one in known if not one.is_at_work()), newest)


class Handshake(asyncio.Protocol):
    """A connection during its TLS handshake; afterwards the real protocol takes over."""

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
        self._early = b""  # data that arrived directly after the handshake
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
        with contextlib.suppress(OSError):  # not TLS, too slow, or disconnected
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
