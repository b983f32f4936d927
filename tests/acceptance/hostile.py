"""Clients that mean harm: each kind does one bad thing, over and over, as one owner.

They come through the front door only: HTTP requests with a token that the cluster knows.
"""

import itertools
import random
import socket
import struct
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

import httpx
import msgspec

from caudal.formats import batch as batch_format
from caudal.formats import frame
from caudal.formats.job import Options, Request, Text
from caudal.formats.outcomes import End, digest_of_digests
from caudal.model import Query, Table

BATCH = "application/vnd.caudal.batch"
_PAUSE_SECONDS, _LEAVE_SECONDS = 0.2, 10.0
TABLE = Table("t", ("t.csv",), ("k",), "SELECT k FROM raw", "t.sql")
PLAIN = "SELECT k, count(*) AS n FROM t GROUP BY k"
ENDLESS = (
    "SELECT count(*) AS n FROM range(100000000) a(x), range(100000000) b(y) "
    "WHERE x * y % 7 = (SELECT length(min(k)) FROM t)"
)
MEMORY = (
    "SELECT list(x) AS n FROM range(2000000000) r(x) WHERE x > (SELECT length(min(k)) FROM t)",
    "SELECT max(length(repeat(k || 'x', 2000000000))) AS n FROM t",
    "SELECT k, list_sort(list(x ORDER BY hash(x))) FROM t, range(50000000) r(x) GROUP BY k",
)
PLANNING = (
    "WITH a0 AS (SELECT k FROM t), "
    + ", ".join(f"a{n} AS (SELECT x.k FROM a{n - 1} x, a{n - 1} y)" for n in range(1, 18))
    + " SELECT count(*) FROM a17",
    "SELECT k"
    + "".join(f", (SELECT max(k) FROM t t{n} WHERE t{n}.k < t.k)" for n in range(80))
    + " FROM t",
)


@dataclass
class Attacker:
    """One hostile client; `said` counts what it was answered, by status."""

    address: tuple[str, int]
    token: str
    chance: random.Random
    stopping: threading.Event
    said: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.url = f"http://{self.address[0]}:{self.address[1]}"
        headers = {"authorization": f"Bearer {self.token}"}
        self.http = httpx.Client(base_url=self.url, headers=headers, timeout=30.0)

    def ask(self, method: str, path: str, content: bytes = b"", **headers: str) -> int:
        """The status; 0 if the connection broke."""
        try:
            status = self.http.request(method, path, content=content, headers=headers).status_code
        except httpx.HTTPError:
            status = 0
        self.said[str(status)] += 1
        return status

    def job(self, sql: str = PLAIN) -> str | None:
        """A new job; None if it was refused."""
        name = uuid.UUID(int=self.chance.getrandbits(128)).hex
        query = Query("q", "", sql, "q.sql")
        options = Options(partitions=2, keep_seconds=0.0, silent_seconds=60.0)
        content = msgspec.json.encode(Request(Text("bad", "", (TABLE,), (query,)), options=options))
        created = self.ask("PUT", f"/jobs/{name}", content) in (200, 201)
        return name if created else None

    def send(self, job: str, data: bytes, number: int = 0) -> int:
        path = f"/jobs/{job}/tables/t/batches/{number}"
        return self.ask("PUT", path, data, **{"content-type": BATCH})

    def end(self, job: str, *batches: bytes) -> None:
        index = [batch_format.describe(frame.of_bytes(one), "") for one in batches]
        digest = digest_of_digests(one.digest for one in index)
        end = End(len(index), sum(one.bytes for one in index), digest)
        self.ask("PUT", f"/jobs/{job}/tables/t/end", msgspec.json.encode(end))

    def pause(self, seconds: float = _PAUSE_SECONDS) -> None:
        self.stopping.wait(seconds * self.chance.uniform(0.5, 1.5))

    @contextmanager
    def raw(self, head: str) -> Iterator[socket.socket]:
        """A bare connection with the head of a request sent."""
        with socket.create_connection(self.address, timeout=10.0) as connection:
            lines = f"{head}\r\nhost: x\r\nauthorization: Bearer {self.token}\r\n"
            connection.sendall(lines.encode())
            yield connection


def encoded(data: bytes, number: int = 0, **forged: object) -> bytes:
    """A batch, some fields of whose header are lies; its digest and that of the header are true."""
    whole = batch_format.encode(
        table="t", number=number, file="t.csv", columns=("k",), first_line=2, offset=0,
        newlines=data.count(b"\n"), data=data,
    )  # fmt: skip
    if not forged:
        return whole
    index, body = frame.decode(
        frame.of_bytes(whole), batch_format.MAGIC, batch_format.BatchHeader, ""
    )
    lies = msgspec.structs.replace(index, **forged)
    return frame.encode(batch_format.MAGIC, lies) + whole[body:]


def garbage(one: Attacker) -> None:
    """Batches that are no batches, or whose records are none."""
    job = one.job()
    if job is None:
        one.pause()
        return
    for number in range(20):
        kind = one.chance.randrange(4)
        noise = one.chance.randbytes(2_000)
        data = (noise, encoded(noise, number), encoded(noise, number, records="arrow"), b"")[kind]
        one.send(job, data, number)
    one.pause()


def forged(one: Attacker) -> None:
    """Headers that lie about what follows."""
    rows = b"row\n" * 2_000
    lies: list[dict[str, object]] = [
        {"newlines": 0},
        {"newlines": -1},
        {"newlines": 1 << 60},
        {"bytes": 1 << 62},
        {"first_line": -(1 << 62)},
        {"offset": 1 << 62},
        {"columns": ("k",) * 9_000},
        {"codec": "zstd"},
        {"codec": "none", "records": "arrow"},
    ]
    job = one.job()
    if job is not None:
        for number, lie in enumerate(lies):
            one.send(job, encoded(rows, number, **lie), number)
        one.send(job, batch_format.MAGIC + struct.pack("<I", 63 << 20) + b"x" * 1_000, 99)
    with suppress(OSError), one.raw("PUT /jobs/x HTTP/1.1") as connection:
        connection.sendall(b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n")
        one.said[connection.recv(12).decode("latin-1")[9:12]] += 1
    one.pause()


def bombs(one: Attacker) -> None:
    """Queries and batches that want all memory."""
    sql = one.chance.choice((*MEMORY, PLAIN))
    job = one.job(sql)
    if job is None:
        one.pause()
        return
    data = encoded(b"one\n" if sql != PLAIN else b"a\n" * (60 << 20))
    if one.send(job, data) == 201:
        one.end(job, data)
    one.pause(3.0)


def endless(one: Attacker) -> None:
    """Queries without an end; some are cancelled, most are left alone."""
    job = one.job(ENDLESS)
    if job is None:
        one.pause()
        return
    data = encoded(b"one\n")
    if one.send(job, data) == 201:
        one.end(job, data)
    one.pause(5.0)
    if one.chance.random() < 0.3:
        one.ask("DELETE", f"/jobs/{job}")


def planning(one: Attacker) -> None:
    """SQL whose planning has no end."""
    one.job(one.chance.choice(PLANNING))
    one.pause()


def slow_bodies(one: Attacker) -> None:
    """Many requests whose bodies come byte by byte."""
    with ExitStack() as held:
        some = []
        for number in range(70):
            with suppress(OSError):
                head = f"PUT /jobs/slow{number} HTTP/1.1"
                some.append(held.enter_context(one.raw(head)))
                some[-1].sendall(b"content-type: application/json\r\ncontent-length: 90000\r\n\r\n")
        for _ in range(30):
            for connection in some:
                with suppress(OSError):
                    connection.sendall(b" ")
            one.pause(1.0)
            if one.stopping.is_set():
                return
        one.said["slow bodies"] += len(some)


def hoarders(one: Attacker) -> None:
    """Hundreds of streams of events, held open and not read."""
    job = one.job()
    if job is None:
        one.pause()
        return
    with ExitStack() as held:
        for _ in range(280):
            with suppress(OSError):
                connection = held.enter_context(one.raw(f"GET /jobs/{job}/events HTTP/1.1"))
                connection.sendall(b"\r\n")
        one.said["streams"] += 280
        for _ in range(20):
            one.pause(1.0)
            if one.stopping.is_set():
                return


KINDS: dict[str, Callable[[Attacker], None]] = {
    "garbage": garbage,
    "forged": forged,
    "bombs": bombs,
    "endless": endless,
    "planning": planning,
    "slow": slow_bodies,
    "hoarders": hoarders,
}


@dataclass
class Horde:
    """One thread of each kind at each gateway, until asked to stop."""

    addresses: list[tuple[str, int]]
    token: str
    seed: int
    kinds: tuple[str, ...] = tuple(KINDS)

    def __post_init__(self) -> None:
        self._stopping = threading.Event()
        self.said: dict[str, Counter[str]] = {kind: Counter() for kind in self.kinds}
        self._threads = [
            threading.Thread(target=self._run, args=(kind, address, number), daemon=True)
            for number, (kind, address) in enumerate(itertools.product(self.kinds, self.addresses))
        ]

    def __enter__(self) -> "Horde":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:  # one that waits for an answer is left behind
            thread.join(_LEAVE_SECONDS / len(self._threads))

    def _run(self, kind: str, address: tuple[str, int], number: int) -> None:
        chance = random.Random(self.seed + number)
        one = Attacker(address, self.token, chance, self._stopping, self.said[kind])
        with one.http:
            while not self._stopping.is_set():
                try:
                    KINDS[kind](one)
                except Exception as error:  # a bug of the attacker: it must show, and go on
                    one.said[f"{type(error).__name__}: {error}"[:80]] += 1
                    time.sleep(_PAUSE_SECONDS)
