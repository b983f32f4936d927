"""Clients of a cluster with two gateways spread over them, whatever they ask for."""

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from zlib import crc32

import pytest
from tests.harness.memory_cluster import Cluster, cluster
from tests.unit.client.conftest import PARAMETERS

from caudal.client import dataset_questions
from caudal.client import load as loads
from caudal.client.client import Client
from caudal.client.upkeep import take_care
from caudal.formats.loads import UpkeepRequest

COUNT = "SELECT count(*) AS n FROM reviews"


def place_of(name: str) -> int:
    return crc32(name.encode()) % 2


NAMES = [next(name for name in map(str, range(99)) if place_of(name) == place) for place in (1, 0)]


@pytest.fixture(scope="module")
def both() -> Iterator[Cluster]:
    with cluster(2) as found:
        yield found


@pytest.fixture
def drawn(both: Cluster, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A client that draws the second gateway, then the first, and so on; nothing was asked yet."""
    names = cycle(NAMES)
    monkeypatch.setattr(dataset_questions, "new_id", lambda: next(names))
    monkeypatch.setattr(loads, "new_id", lambda: next(names))
    for server in both.servers:
        server.unreliable.asked.clear()
    return Client(both.gateway)


@pytest.fixture(scope="module")
def shelf(both: Cluster, books: Path) -> str:
    Client(both.gateway).load("books", books, dataset="shelf")
    return "shelf"


def asked(found: Cluster, path: str) -> list[int]:
    """Return how many requests for a path came to each gateway."""
    return [[one for _, one in server.unreliable.asked].count(path) for server in found.servers]


def ids(found: Cluster) -> set[str]:
    """Return the ids of the jobs that clients created."""
    return {
        path.split("/")[2]
        for server in found.servers
        for method, path in server.unreliable.asked
        if method == "PUT" and path.count("/") == 2 and path.startswith("/jobs/")
    }


def test_submitted_jobs(both: Cluster, books: Path, drawn: Client) -> None:
    seen = set[int]()
    while len(seen) < 2:
        drawn.run("books", books, "q2", parameters={"min_decades": 1})
        for job_id in ids(both):
            assert both.asked_about(job_id) == [place_of(job_id)]
            seen.add(place_of(job_id))


def test_jobs_whose_rows_a_program_sends(both: Cluster, drawn: Client) -> None:
    seen = set[int]()
    while len(seen) < 2:
        with drawn.job("books", "q2") as job:
            job.cancel()
        assert both.asked_about(job.id) == [place_of(job.id)]
        seen.add(place_of(job.id))


def test_questions_to_datasets(both: Cluster, shelf: str, drawn: Client) -> None:
    for _ in NAMES:
        assert drawn.dataset(shelf).sql(COUNT, "books").rows() == [{"n": 1200}]
    assert asked(both, "/datasets/shelf/jobs") == [1, 1]


def test_watching_clients(both: Cluster, shelf: str, drawn: Client) -> None:
    for _ in NAMES:
        watching = drawn.dataset(shelf).watch("books", "q3", parameters=PARAMETERS)
        assert next(watching)[0] == 1
        drawn.dataset(shelf).sql(COUNT, "books")  # so that the next watch draws another
    assert asked(both, "/datasets/shelf/events") == [1, 1]


def test_offers_of_loads(both: Cluster, books: Path, shelf: str, drawn: Client) -> None:
    for _ in NAMES:
        drawn.load("books", books, dataset=shelf)
    assert asked(both, "/datasets/shelf/offers") == [1, 1]


def test_upkeep_of_datasets(both: Cluster, shelf: str, drawn: Client) -> None:
    seen = set[int]()
    while len(seen) < 2:
        with drawn.gateways() as gateways:
            take_care(UpkeepRequest(shelf, compact_bytes=1024), gateways)
        for job_id in ids(both):
            assert both.asked_about(job_id) == [place_of(job_id)]
            seen.add(place_of(job_id))
