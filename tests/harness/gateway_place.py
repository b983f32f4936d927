"""A gateway's HTTP application on memory adapters, a worker that runs when told, a tiny job."""

import atexit
import io
import itertools
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol, Self

import msgspec
from starlette.testclient import TestClient

from caudal.application.loadable import loadable_applications
from caudal.broker import MemoryBroker
from caudal.formats import batch as batch_format
from caudal.formats import frame
from caudal.formats.job import Options, Request, Text
from caudal.formats.outcomes import End, digest_of_digests
from caudal.formats.quotas import Quotas
from caudal.formats.tokens import Right, TokenEntry, digest_of
from caudal.gateway.application import make_application
from caudal.gateway.audit import Audit
from caudal.gateway.compute import SharedCompute
from caudal.gateway.limits import GatewayLimits
from caudal.gateway.planners import Planners
from caudal.gateway.service import Service
from caudal.gateway.tokens import Tokens
from caudal.jobs import execute
from caudal.jobs.ports import Bounds, Ports
from caudal.jobs.runs import JobRuns
from caudal.jobs.service import JobService
from caudal.kernels.csv import cut_batches
from caudal.model import Query, Table
from caudal.process.tokens import Known, changing, read_key
from caudal.store.memory import MemoryStore
from tests.harness.hand_clock import HandClock

PEOPLE = Table(
    "people", ("people.csv",), ("name", "age"),
    "SELECT name, TRY_CAST(age AS INTEGER) AS age, "
    "CASE WHEN TRY_CAST(age AS INTEGER) IS NULL THEN 'no age' END AS reject FROM raw",
    "tables/people.sql",
)  # fmt: skip
VISITS = Table(
    "visits", ("visits.csv",), ("name", "place"), "SELECT name, place FROM raw", "tables/visits.sql"
)
ADULTS = Query("adults", "Adults", "SELECT name, age FROM people WHERE age > 17 ORDER BY age", "a")
PLACES = Query(
    "places", "Places",
    "SELECT place, count(*) AS n FROM visits JOIN people USING (name) GROUP BY 1 ORDER BY 1",
    "p",
)  # fmt: skip
REQUEST = Request(
    Text("tiny", "A tiny application", (PEOPLE, VISITS), (ADULTS, PLACES)),
    options=Options(batch_bytes=30, partitions=2, group=4),
)
FILES = {
    "people": b"name,age\nAnn,40\nBob,12\nCid,x\nDee,33\nEva,20\nFay,18\nGus,17\nHal,90\n",
    "visits": b"name,place\nAnn,Rome\nBob,Rome\nDee,Oslo\nZed,Oslo\nEva,Rome\n",
}
ADULT_ROWS = [("Fay", 18), ("Eva", 20), ("Dee", 33), ("Ann", 40), ("Hal", 90)]
ALICE, BERTA = "alice-has-a-long-token", "berta-has-another-token"
CARLA, DORA = "carla-may-look-at-everything", "dora-may-only-read-her-own"
KEY = b"k" * 32
BOTH = frozenset({Right.READ, Right.SUBMIT})


def known(*more: TokenEntry) -> Known:
    """Two owners with the usual rights, an admin, and one who only reads."""

    def entry(name: str, token: str, rights: frozenset[Right]) -> TokenEntry:
        return TokenEntry(name, rights, None, digest_of(token, KEY))

    usual = (
        entry("alice", ALICE, BOTH),
        entry("berta", BERTA, BOTH),
        entry("carla", CARLA, frozenset({Right.ADMIN})),
        entry("dora", DORA, frozenset({Right.READ})),
    )
    return Known((*usual, *more), KEY)


TOKENS = Tokens(known)


def write_token(path: Path, name: str, token: str, rights: frozenset[Right] = BOTH) -> None:
    """Add a token to a file, as `caudal token new` does."""
    with changing(path) as entries:
        entries.append(TokenEntry(name, rights, None, digest_of(token, read_key(path))))


BATCH = "application/vnd.caudal.batch"


@cache
def shared_planners() -> Planners:
    """Real children, started once for all tests of a process."""
    made = Planners(2)
    atexit.register(made.close)
    return made


def batches(table: str) -> list[bytes]:
    """The batches of a table of the tiny application."""
    cuts = cut_batches(io.BytesIO(FILES[table]), f"{table}.csv", batch_bytes=30)
    return [
        batch_format.encode(
            table=table,
            number=number,
            file=f"{table}.csv",
            columns=cut.header.names,
            first_line=cut.first_line,
            offset=cut.offset,
            newlines=cut.newlines,
            data=cut.data.tobytes(),
        )
        for number, cut in enumerate(cuts)
    ]


def end_of(table: str) -> End:
    found = [batch_format.describe(frame.of_bytes(one), "") for one in batches(table)]
    return End(
        len(found), sum(one.bytes for one in found), digest_of_digests(one.digest for one in found)
    )


class Clock:
    """Real time; nothing here sleeps."""

    def now(self) -> float:
        return time.time()

    def elapsed(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        raise AssertionError(f"slept for {seconds}")


class WorkerClock(Clock):
    """A worker that finds nothing goes on at once."""

    def sleep(self, seconds: float) -> None:
        """No time passes."""


@dataclass
class Place:
    """Everything in one process."""

    limits: GatewayLimits = field(default_factory=GatewayLimits)
    bounds: Bounds = field(default_factory=Bounds)
    tokens: Tokens = field(default_factory=lambda: TOKENS)
    quotas: Quotas = field(default_factory=Quotas)
    audit: Audit = field(default_factory=Audit)
    store: MemoryStore = field(default_factory=MemoryStore)
    broker: MemoryBroker = field(default_factory=MemoryBroker)
    clock: Clock | HandClock = field(default_factory=WorkerClock)
    stopping: bool = False

    def __post_init__(self) -> None:
        ids = itertools.count()
        self.ports = Ports(
            store=self.store,
            broker=self.broker,
            compute=SharedCompute(shared_planners()),
            clock=self.clock,
            new_id=lambda: f"run{next(ids)}",
            job_runs=JobRuns(self.store),
            bounds=self.bounds,
        )
        self.services: list[Service] = []
        self.service = self.another("g1")
        self.consumer = self.broker.consume()

    def another(self, name: str) -> Service:
        """Another gateway of the same cluster."""
        made = Service(
            gateway=JobService(self.ports, name),
            ports=self.ports,
            tokens=self.tokens,
            limits=self.limits,
            stopping=lambda: self.stopping,
            quotas=lambda: self.quotas,
            audit=self.audit,
            select=shared_planners().select,
            applications=loadable_applications,
        )
        self.services.append(made)
        return made

    def client(self, token: str | None = ALICE, service: Service | None = None) -> TestClient:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        app = make_application(service or self.service)
        return TestClient(app, headers=headers, raise_server_exceptions=False)

    def work(self) -> None:
        """Until nothing waits."""
        while execute.take_turn(self.ports, self.consumer) is not execute.TurnResult.IDLE:
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for service in self.services:
            service.close()


def put_batch(client: TestClient, table: str, number: int, data: bytes, job: str = "j") -> int:
    path = f"/jobs/{job}/tables/{table}/batches/{number}"
    return client.put(path, content=data, headers={"content-type": BATCH}).status_code


def send(client: TestClient, table: str, job: str = "j") -> None:
    """A whole table, every answer checked."""
    for number, data in enumerate(batches(table)):
        assert put_batch(client, table, number, data, job) == 201
    end = end_of(table)
    content = {"batches": end.batches, "bytes": end.bytes, "digest": end.digest}
    assert client.put(f"/jobs/{job}/tables/{table}/end", json=content).status_code == 201


def job_content(request: Request = REQUEST) -> bytes:
    return msgspec.json.encode(request)


def create(client: TestClient, request: Request = REQUEST, job: str = "j") -> str:
    """A new job; gives its run."""
    answer = client.put(f"/jobs/{job}", content=job_content(request))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["run"])


class Answer(Protocol):
    """What every HTTP client gives."""

    @property
    def status_code(self) -> int: ...

    def json(self) -> Any: ...


def code_of(answer: Answer) -> tuple[int, str]:
    """Status and code of an answer that says no; checks its shape."""
    (error,) = answer.json().values()
    assert set(error) <= {"code", "message", "job", "outcome", "quota"}
    assert error["message"]
    return answer.status_code, error["code"]
