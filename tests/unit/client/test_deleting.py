"""A deletion whose answer is lost is repeated, but never hits what was made anew meanwhile."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.harness.memory_cluster import Cluster
from tests.unit.client.conftest import PARAMETERS

from caudal.application import find_application
from caudal.client.client import Client
from caudal.client.failover import Answer, Failover
from caudal.client.http import HttpGateways
from caudal.client.load import _is_under_way
from caudal.client.submit import Submission, submit
from caudal.errors import UsageError
from caudal.files.sources import Sources
from caudal.jobs.interfaces import ConflictError


@pytest.fixture
def lose(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """The answer to the first deletion is lost, and something happens meanwhile. The deletion may
    not even have arrived. A balancer may answer in place of the gateway."""

    def lose(arrives: bool, meanwhile: Callable[[], object], balancer: int | None = None) -> None:
        ask, lost = Failover._one, list[str]()

        def one(self: Failover, address: str, request: Any) -> Answer:
            if request.method != "DELETE" or lost:
                return ask(self, address, request)
            lost.append(address)
            if arrives:
                ask(self, address, request)
            meanwhile()
            if balancer is not None:
                return Answer(address, balancer, b"no gateway answered", 0.0)
            raise httpx.ReadError("the gateway died")

        monkeypatch.setattr(Failover, "_one", one)

    return lose


def nothing() -> None:
    """Nobody else does anything."""


ARRIVES = pytest.mark.parametrize("arrives", [True, False])


@ARRIVES
def test_a_deletion_is_repeated(
    lose: Callable[..., None], arrives: bool, one: Cluster, books: Path
) -> None:
    client = Client(one.gateway)
    made = client.load("books", books, dataset="twice")
    lose(arrives, nothing)
    assert client.delete_dataset("twice").version == made.version
    with pytest.raises(UsageError, match="no dataset"):
        client.versions("twice")


@pytest.mark.parametrize("balancer", [None, 502, 504])
def test_a_dataset_that_was_made_anew_is_left(
    lose: Callable[..., None], balancer: int | None, one: Cluster, books: Path
) -> None:
    client, name = Client(one.gateway), f"anew{balancer}"
    client.load("books", books, dataset=name)
    lose(True, lambda: client.load("books", books, dataset=name), balancer)
    with pytest.raises(ConflictError, match=f"dataset {name} was deleted, and made anew before"):
        client.delete_dataset(name)
    assert [one.kind for one in client.versions(name)][-1] == "load"


def test_a_dataset_that_was_made_anew_with_fewer_versions_is_left(
    lose: Callable[..., None], one: Cluster, books: Path
) -> None:
    client = Client(one.gateway)
    for _ in range(2):
        client.load("books", books, dataset="fewer", again=True)
        client.dataset("fewer").append("books", "books", [BOOK])
    lose(True, lambda: client.load("books", books, dataset="fewer"))
    with pytest.raises(ConflictError, match="the new one is left as it is"):
        client.delete_dataset("fewer")


BOOK = {
    "Title": "x",
    "authors": ["a"],
    "publisher": None,
    "publishedDate": "1999",
    "categories": ["b"],
}


def test_a_dataset_that_grew_is_the_same(
    lose: Callable[..., None], one: Cluster, books: Path
) -> None:
    client = Client(one.gateway)
    client.load("books", books, dataset="grown")
    lose(False, lambda: client.dataset("grown").append("books", "books", [BOOK]))
    client.delete_dataset("grown")
    with pytest.raises(UsageError, match="no dataset"):
        client.versions("grown")


def run(gateways: HttpGateways, books: Path, job_id: str) -> None:
    submit(
        Submission(
            find_application("books"),
            Sources(books),
            queries=("q1",),
            parameters=PARAMETERS,
            job_id=job_id,
        ),
        gateways,
    )


def test_a_job_that_was_made_anew_is_left(
    lose: Callable[..., None], one: Cluster, books: Path
) -> None:
    with Client(one.gateway).gateways() as gateways:
        run(gateways, books, "again")
        first = gateways.status("again").run
        lose(True, lambda: run(gateways, books, "again"))
        with pytest.raises(ConflictError, match="job again was deleted, and made anew before"):
            gateways.delete("again")
        now = gateways.status("again")
        assert now.run != first
        assert now.results, "its results are there"


@ARRIVES
def test_the_deletion_of_a_job_is_repeated(
    lose: Callable[..., None], arrives: bool, one: Cluster, books: Path
) -> None:
    with Client(one.gateway).gateways() as gateways:
        run(gateways, books, "gone")
        lose(arrives, nothing)
        assert gateways.delete("gone").state == "done"


def test_a_load_that_somebody_began_anew_goes_on(
    lose: Callable[..., None], one: Cluster, books: Path
) -> None:
    with Client(one.gateway).gateways() as gateways:
        run(gateways, books, "load")
        gateways.delete("load")
        request = Submission(find_application("books"), Sources(books), queries=("q1",))
        gateways.create("load", request.request(request.options))
        gateways.cancel("load")
        lose(True, lambda: run(gateways, books, "load"))
        assert _is_under_way(gateways, "load")
