"""Streams and Python calls that load into a dataset of a cluster."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import httpx
import pytest
from tests.harness.cluster_loads import SMALL, shelf_of, stored_rows
from tests.harness.memory_cluster import Cluster, cluster
from tests.harness.shelves import sales_app, sales_loader

import caudal
from caudal.client.batches import Compress
from caudal.client.failover import Answer, _Request
from caudal.client.http import HttpGateways
from caudal.client.load_stream import ClusterTarget
from caudal.datasets.reports import LoadReport
from caudal.datasets.shelf import Shelf
from caudal.datasets.stream_loader import SkippedPart, StreamLoader, StreamTarget
from caudal.embedded.dataset_rows import arrow_rows
from caudal.embedded.dataset_stream import EmbeddedTarget
from caudal.errors import UsageError
from caudal.generate import generate
from caudal.jobs.interfaces import GoneError
from caudal.store import MemoryStore

TEXT = b"id,amount,day\n" + b"".join(
    b'%d,%d.25,"2024-01-02"\n' % (n, n) if n % 7 else b"x%d,1,\n" % n for n in range(1, 40)
)
PIECES = [TEXT[:200], None, TEXT[200:401], None, TEXT[401:]]  # None: nothing came for long
Reports = list[LoadReport | SkippedPart]


class KilledError(BaseException):
    """The loader stops here."""


class Feed:
    """A stream in pieces, and the time that passes."""

    def __init__(self, pieces: list[bytes | None]) -> None:
        self._pieces = list(pieces)
        self.time = 0.0

    def read(self, timeout: float | None) -> bytes | None:
        piece = self._pieces.pop(0) if self._pieces else b""
        self.time += (timeout or 0.0) if piece is None else 0.0
        return piece

    def clock(self) -> float:
        return self.time


def send(target: StreamTarget, report: Callable[[LoadReport | SkippedPart], None]) -> None:
    feed = Feed(PIECES)
    StreamLoader(target, "sales", 1.0, report, clock=feed.clock).load(feed)


def killed_after(count: int, reports: Reports) -> Callable[[LoadReport | SkippedPart], None]:
    def report(one: LoadReport | SkippedPart) -> None:
        reports.append(one)
        if len(reports) == count:
            raise KilledError

    return report


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    with cluster() as found:
        yield found


def test_a_stream_that_is_killed_and_sent_again_has_every_row_once(running: Cluster) -> None:
    reports: Reports = []
    with HttpGateways(running.addresses) as gateways:
        target = ClusterTarget(sales_app(), "flow", gateways, SMALL, Compress.NEVER)
        with pytest.raises(KilledError):
            send(target, killed_after(2, reports))
        send(target, reports.append)
    assert [one.version for one in reports] == [1, 2, 1, 2, 3]
    assert [type(one) for one in reports[2:4]] == [SkippedPart, SkippedPart]
    with sales_loader(MemoryStore()) as loader:
        send(EmbeddedTarget(loader), lambda _: None)
        whole = Shelf("", loader.tools.store, loader.contents())
    here = shelf_of(running.store, name="flow")
    for table in ("sales", "rejects"):  # lines of rejected rows are those of the stream
        assert stored_rows(here, table) == arrow_rows(whole, table).to_pylist()


def test_the_same_from_python(running: Cluster, tmp_path: Path) -> None:
    generate("movies", scale=0.001, seed=3, out=tmp_path)
    report = caudal.load("movies", tmp_path, gateway=running.gateway, dataset="films")
    assert report.version == 1
    client = caudal.Client(running.gateway)
    assert client.load("movies", tmp_path, dataset="films").version is None
    (found,) = [one for one in client.datasets() if one.name == "films"]
    assert (found.application, found.rows, found.version) == ("movies", report.rows, 1)
    assert [one.kind for one in client.versions("films")] == ["create", "load"]
    assert client.share("films", "ben").readers == ("ben",)
    assert client.share("films", "ben", shared=False).readers == ()
    assert client.delete_dataset("films").rows == report.rows
    with pytest.raises(UsageError, match="there is no dataset films"):
        client.versions("films")
    with pytest.raises(UsageError, match="say where to load"):
        caudal.load("movies", tmp_path)


class LostReplies(HttpGateways):
    """The first answer to every DELETE is lost, though the gateway did what was asked."""

    def __init__(self, addresses: Sequence[str]) -> None:
        super().__init__(addresses)
        self.lost: set[str] = set()

    def _one(self, address: str, request: _Request) -> Answer:
        answer = super()._one(address, request)
        if request.method == "DELETE" and request.path not in self.lost:
            self.lost.add(request.path)
            raise httpx.ReadError("the gateway was killed")
        return answer


def test_a_dataset_and_a_job_are_deleted_although_the_first_answer_is_lost(
    running: Cluster, tmp_path: Path
) -> None:
    generate("movies", scale=0.001, seed=3, out=tmp_path)
    report = caudal.load("movies", tmp_path, gateway=running.gateway, dataset="brief")
    with LostReplies(running.addresses) as gateways:
        assert gateways.delete_dataset("brief").rows == report.rows
        ended = next(one for one in gateways.jobs() if one.state == "done")
        assert gateways.delete(ended.id).state == "done"
        assert len(gateways.lost) == 2
        with pytest.raises(UsageError, match="there is no dataset brief"):
            gateways.delete_dataset("brief")
        with pytest.raises(GoneError):
            gateways.delete(ended.id)
