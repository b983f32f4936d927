"""uvicorn's HTTP/1.1 protocol with additional bounds: partial heads, refused bodies, connections.

Rules
1. The head of a request must arrive in time, counted from the connection or from its first byte.
   uvicorn itself limits idle time between two requests.
2. If a request was answered before its body arrived, the body is discarded for a while so that the
   sender can read the answer. Then the connection is closed.
3. Input that is not HTTP gets an error of the usual shape, if an answer is still possible.
"""

import asyncio
from collections.abc import Callable
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from caudal.gateway.connections import Arrivals
from caudal.gateway.limits import GatewayLimits
from caudal.gateway.refusals import Refusal
from caudal.gateway.visits import is_admitted, visit_of
from caudal.version import __version__

_NO_HTTP = Refusal(400, "bad_request", "this is not an HTTP request, or its head is too large")


class BoundedProtocol(H11Protocol):
    """One connection."""

    limits: ClassVar[GatewayLimits] = GatewayLimits()
    arrivals: ClassVar[Arrivals] = Arrivals(GatewayLimits.connections)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See asyncio."""
        self._timer: asyncio.TimerHandle | None = None
        super().connection_made(transport)
        self.arrivals.add(self)
        self._close_after(self.limits.head_seconds)

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._let_be_unless_refused()
        elif self._timer is None:
            self._close_after(self.limits.head_seconds)

    def handle_events(self) -> None:
        """See uvicorn. Also register a callback that tells the connection its owner."""
        super().handle_events()
        if self.scope is not None:
            visit_of(self.scope).on_admission = self._know

    def _know(self, owner: str) -> None:
        self.arrivals.know(self, owner)

    def on_response_complete(self) -> None:
        """See uvicorn."""
        super().on_response_complete()
        self._let_be()
        if self._is_refused():
            self._close_after(self.limits.linger_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._let_be()
        self.arrivals.remove(self)
        super().connection_lost(exc)

    def is_at_work(self) -> bool:
        """Return whether it is serving an admitted request."""
        under_way = self.cycle is not None and not self.cycle.response_complete
        return under_way and is_admitted(self.scope)

    def drop(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """See uvicorn."""
        del msg
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()
            return
        body = _NO_HTTP.body(None)
        headers = [
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("connection", "close"),
            ("caudal-version", __version__),
        ]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _is_refused(self) -> bool:
        return self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY

    def _let_be_unless_refused(self) -> None:
        if not self._is_refused():
            self._let_be()

    def _let_be(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close_after(self, seconds: float) -> None:
        close: Callable[[], None] = self.transport.abort
        self._timer = self.loop.call_later(seconds, close)


def protocol_with(limits: GatewayLimits, arrivals: Arrivals) -> type[BoundedProtocol]:
    """Return the protocol class with these limits."""
    return type("BoundedProtocol", (BoundedProtocol,), {"limits": limits, "arrivals": arrivals})
