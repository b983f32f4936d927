"""The gateway process: a server on the main thread's event loop, upkeep loops in threads.

To stop, the gateway accepts no new connection and starts no new round. Requests in progress get
`grace_seconds` to end. Streams end at once; clients open them again elsewhere. Calls that are then
still stuck in a thread are abandoned: nothing confirmed to a client depends on them.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import uvicorn

from caudal.errors import UsageError
from caudal.formats.quotas import NONE_GIVEN, Quotas
from caudal.gateway.application import make_application
from caudal.gateway.audit import Audit
from caudal.gateway.cluster_view import ClusterView, NoMedics
from caudal.gateway.connections import Arrivals, Handshake
from caudal.gateway.figures import GatewayMetrics
from caudal.gateway.limits import GatewayLimits
from caudal.gateway.protocol import protocol_with
from caudal.gateway.result_sql import Select
from caudal.gateway.samples import Sampling
from caudal.gateway.service import Applications, Service
from caudal.gateway.tokens import Tokens, check_host
from caudal.gateway.upkeep import Pauses, start_upkeep
from caudal.jobs.ports import Ports
from caudal.jobs.service import JobService
from caudal.process.certificates import Certificate
from caudal.process.frame import ProcessExit
from caudal.process.logs import fields
from caudal.process.signals import Stop, stop_on_signals
from caudal.process.ticks import OnTick, ignore, ticking

_KEEP_ALIVE_SECONDS = 30
_BACKLOG = 1024
_LIBRARIES = ("uvicorn", "uvicorn.error", "uvicorn.access")  # they log malformed requests

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GatewaySettings:
    """Settings of one gateway process."""

    name: str
    host: str = "127.0.0.1"
    port: int = 8421
    tokens: Tokens = field(default_factory=Tokens)
    limits: GatewayLimits = field(default_factory=GatewayLimits)
    pauses: Pauses = field(default_factory=Pauses)
    grace_seconds: float = 7.0
    certificate: Certificate | None = None  # if set, only TLS is accepted
    quotas: Callable[[], Quotas] = lambda: NONE_GIVEN
    audit: Audit = field(default_factory=Audit)
    stale_files: Callable[[], int] = lambda: 0
    cluster: ClusterView = field(default_factory=NoMedics)
    applications: Applications = tuple


class Server(uvicorn.Server):
    """uvicorn without its own signal handlers: the process installs its own."""

    certificate: Certificate | None = None
    arrivals: Arrivals
    limits: GatewayLimits
    stopping: Callable[[], bool] = staticmethod(lambda: False)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """See uvicorn."""
        yield

    async def on_tick(self, counter: int) -> bool:
        """See uvicorn: ten times a second. Any thread may have requested the stop."""
        self.should_exit = self.should_exit or self.stopping()
        return await super().on_tick(counter)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections here, so that TLS handshakes are bounded too (connections.py)."""
        await super().startup(sockets=[])
        loop = asyncio.get_running_loop()
        for one in sockets or ():
            server = await loop.create_server(self._connection, sock=one, backlog=_BACKLOG)
            self.servers.append(server)

    def _connection(self) -> asyncio.Protocol:
        if self.certificate is None:
            return self._protocol()
        seconds = self.limits.handshake_seconds
        return Handshake(self._protocol, self.certificate, self.arrivals, seconds)

    def _protocol(self) -> asyncio.Protocol:
        make = self.config.http_protocol_class
        made = make(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        assert isinstance(made, asyncio.Protocol)
        return made


def serve(
    settings: GatewaySettings,
    ports: Ports,
    stop: Stop,
    figures: GatewayMetrics,
    select: Select,
    on_tick: OnTick = ignore,
) -> ProcessExit:
    """Serve until asked to stop."""
    check_host(settings.host, settings.tokens)
    service = Service(
        gateway=JobService(ports, f"{settings.name}-{ports.new_id()[:8]}"),
        ports=ports,
        tokens=settings.tokens,
        limits=settings.limits,
        figures=figures,
        stopping=stop.requested,
        quotas=settings.quotas,
        audit=settings.audit,
        select=select,
        stale_files=settings.stale_files,
        cluster=settings.cluster,
        applications=settings.applications,
    )
    with listening(settings.host, settings.port) as listener:
        return asyncio.run(_serve(settings, service, stop, on_tick, listener))


def make_server(settings: GatewaySettings, service: Service) -> Server:
    """Create a server for the service; bind nothing yet."""
    for library in _LIBRARIES:
        logging.getLogger(library).setLevel(logging.ERROR)
    arrivals = Arrivals(settings.limits.connections)
    server = Server(
        uvicorn.Config(
            make_application(service),
            http=protocol_with(settings.limits, arrivals),
            proxy_headers=False,  # the client is the connected peer, whatever a header says
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=int(settings.grace_seconds),
            h11_max_incomplete_event_size=settings.limits.head_bytes,
        )
    )
    server.certificate, server.arrivals = settings.certificate, arrivals
    server.limits = settings.limits
    return server


async def _serve(
    settings: GatewaySettings,
    service: Service,
    stop: Stop,
    on_tick: OnTick,
    listener: socket.socket,
) -> ProcessExit:
    server = make_server(settings, service)
    server.stopping = stop.requested
    stop_on_signals(asyncio.get_running_loop(), stop)
    ticks = asyncio.create_task(ticking(on_tick))
    samples = Sampling(service.ports.store, service.ports.clock, service.peers)
    upkeep = start_upkeep(
        service.ports,
        service.figures,
        stop.requested,
        settings.pauses,
        service.census.round,
        samples.round,
    )
    host, port = listener.getsockname()[:2]
    _log.info("listening", extra=fields(host=host, port=port))
    try:
        await server.serve([listener])
    finally:
        stop.request("the server ended")
        ticks.cancel()
        service.close()
    for thread in upkeep:
        thread.join(timeout=0.5)
    stuck = service.busy or any(thread.is_alive() for thread in upkeep)
    _log.info("stopped", extra=fields(reason=stop.reason))
    return ProcessExit.ABANDONED if stuck else ProcessExit.COMPLETE


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Yield a bound socket; port 0 takes a free port."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None)
        reason = os.strerror(number) if number and number > 0 else str(error)
        raise UsageError(f"cannot listen on {host}:{port}: {reason}") from None
    with listener:
        # Connections inherit TCP_NODELAY. asyncio sets it only if it sees a protocol number.
        # Without it, a head and a body in two packets wait 40 milliseconds for an acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listener
