"""A whole cluster in this process: memory store and broker, real gateways over HTTP, workers.

Gateways can be made to lose answers, to answer twice, or to die; workers can be held back. For
tests of clients, which see nothing of a cluster but its HTTP.
"""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from caudal.broker import MemoryBroker
from caudal.formats.quotas import Quotas
from caudal.formats.tokens import Right, TokenEntry, digest_of
from caudal.gateway.application import make_application
from caudal.gateway.service import Service
from caudal.gateway.tokens import Tokens
from caudal.jobs import loops
from caudal.jobs.ports import Bounds, Ports
from caudal.jobs.runs import JobRuns
from caudal.jobs.service import JobService
from caudal.process.clock import SystemClock, new_id
from caudal.process.signals import Stop
from caudal.process.tokens import Known
from caudal.store.memory import MemoryStore
from caudal.store.port import Store
from caudal.worker.compute import LocalCompute
from tests.harness.waiting import until

Judge = Callable[[str, str], int | None]  # method and path -> a status in place of the answer


def fair(method: str, path: str) -> int | None:
    """Nothing goes wrong."""
    del method, path
    return None


class Unreliable:
    """The application, some of whose answers are replaced after all was done for them."""

    def __init__(self) -> None:
        self.app: ASGIApp
        self.judge: Judge = fair
        self.asked: list[tuple[str, str]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        self.asked.append((scope["method"], scope["path"]))
        status = self.judge(scope["method"], scope["path"])
        if status is None:
            await self.app(scope, receive, send)
            return

        async def drop(message: Message) -> None:
            del message

        await self.app(scope, receive, drop)
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"lost"})


@dataclass
class Server:
    """One gateway: a thread, and the port that it listens on."""

    make: Callable[[Stop], ASGIApp]
    port: int = 0
    unreliable: Unreliable = field(default_factory=Unreliable)
    _stop: Stop = field(default_factory=Stop)
    _server: uvicorn.Server = field(init=False)
    _thread: threading.Thread = field(init=False)

    def start(self) -> None:
        """Listen; after a death, at the same address."""
        self._stop = Stop()
        self.unreliable.app = self.make(self._stop)
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", self.port))
        self.port = listening.getsockname()[1]
        config = uvicorn.Config(
            self.unreliable, log_config=None, lifespan="off", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([listening],))
        self._thread.start()
        until(lambda: self._server.started)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def die(self) -> None:
        """Stop listening and cut every connection."""
        self._stop.request("dead")
        self._server.should_exit = self._server.force_exit = True
        self._thread.join()


@dataclass
class Cluster:
    """See above. `token` is asked for if it is given."""

    token: str | None = None
    quotas: Quotas = field(default_factory=Quotas)
    working: threading.Event = field(default_factory=threading.Event)  # cleared: workers rest
    store: Store = field(default_factory=MemoryStore)
    broker: MemoryBroker = field(default_factory=MemoryBroker)
    servers: list[Server] = field(default_factory=list)
    _stop: Stop = field(default_factory=Stop)
    _threads: list[threading.Thread] = field(default_factory=list)
    _computes: list[LocalCompute] = field(default_factory=list)

    def start(self, gateways: int = 1) -> None:
        self.working.set()
        for number in range(gateways):
            server = Server(partial(self._gateway, f"g{number}"))
            server.start()
            self.servers.append(server)
        thread = threading.Thread(target=self._work)
        thread.start()
        self._threads.append(thread)

    def stop(self) -> None:
        self._stop.request("over")
        self.working.set()
        for server in self.servers:
            server.die()
        for thread in self._threads:
            thread.join()
        for compute in self._computes:
            compute.close()

    @property
    def addresses(self) -> list[str]:
        return [server.address for server in self.servers]

    @property
    def gateway(self) -> str:
        return ",".join(self.addresses)

    def asked_about(self, job_id: str) -> list[int]:
        """The numbers of the gateways that were asked anything about a job."""
        return [
            number
            for number, server in enumerate(self.servers)
            if any(path.startswith(f"/jobs/{job_id}") for _, path in server.unreliable.asked)
        ]

    def _gateway(self, name: str, stop: Stop) -> ASGIApp:
        ports = self._ports(stop)
        tokens = Tokens(self._known) if self.token else Tokens()
        service = Service(
            JobService(ports, name),
            ports,
            tokens,
            stopping=stop.requested,
            quotas=lambda: self.quotas,
        )
        return make_application(service)

    def _known(self) -> Known:
        digest = digest_of(self.token or "", b"key")
        return Known((TokenEntry("somebody", frozenset(Right), None, digest),), b"key")

    def _ports(self, stop: Stop) -> Ports:
        compute = LocalCompute()
        self._computes.append(compute)
        return Ports(
            store=self.store,
            broker=self.broker,
            compute=compute,
            clock=SystemClock(stop),
            new_id=new_id,
            job_runs=JobRuns(self.store),
            bounds=Bounds(idle_seconds=0.01),
        )

    def _work(self) -> None:
        ports = self._ports(self._stop)

        def stopping() -> bool:
            self.working.wait()
            return self._stop.requested()

        loops.work(ports, self.broker.consume(), stopping)


@contextmanager
def cluster(gateways: int = 1, token: str | None = None) -> Iterator[Cluster]:
    found = Cluster(token)
    try:
        found.start(gateways)
        yield found
    finally:
        found.stop()
