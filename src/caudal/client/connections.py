"""Connections to gateways that several calls use, one after the other or at once.

Rules
1. A connection is used for one request at a time, and again for the next one if it comes soon. To
   open one costs a client and its gateway as much as a request, and a small job has only four.
2. Idle connections are closed after a few seconds, before a gateway closes them.
3. Whoever uses connections holds a reference. They are closed when the last one is gone, or by
   `close`. A process that was forked does not use those of its parent.

Thread-safe.
"""

import os
import ssl
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import cache

import httpx

from caudal.client.addresses import is_loopback
from caudal.client.bodies import IDENTITY
from caudal.client.pace import pace_sockets

_KEPT, _KEPT_SECONDS = 8, 5.0  # idle connections


class Connections:
    """Connections to some addresses."""

    def __init__(self, addresses: Sequence[str], trusted: ssl.SSLContext | None = None) -> None:
        is_here = all(is_loopback(one) for one in addresses)
        is_encrypted = any(one.startswith("https:") for one in addresses)
        self.http = httpx.Client(
            limits=httpx.Limits(max_keepalive_connections=_KEPT, keepalive_expiry=_KEPT_SECONDS),
            headers=IDENTITY,
            verify=trusted or _usual_trust(needed=not is_here or is_encrypted),
            trust_env=not is_here,  # no proxy for this machine
        )
        pace_sockets(self.http)
        self._process = os.getpid()
        self._closing = weakref.finalize(self, _close, self.http, self._process)

    @property
    def is_usable(self) -> bool:
        """Return whether they are open, and of this process."""
        return self._closing.alive and self._process == os.getpid()

    def close(self) -> None:
        """Close all connections; requests that use one fail."""
        self._closing()


class KeptConnections:
    """Connections that are made when they are first needed, and again after `close`."""

    def __init__(self, make: Callable[[], Connections]) -> None:
        self._make = make
        self._kept: Connections | None = None
        self._lock = threading.Lock()

    def get(self) -> Connections:
        with self._lock:
            if self._kept is None or not self._kept.is_usable:
                self._kept = self._make()
            return self._kept

    def close(self) -> None:
        """Use them no more; they are closed when nobody uses them."""
        with self._lock:
            self._kept = None


def _close(http: httpx.Client, process: int) -> None:
    if process == os.getpid():
        http.close()


@cache
def _usual_trust(*, needed: bool) -> ssl.SSLContext:
    """Return a context that trusts the usual certificates, or nobody if none is needed.

    They are loaded once: that takes longer than a small job.
    """
    return httpx.create_ssl_context() if needed else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
