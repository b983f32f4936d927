"""A dataset made over HTTP, with an application that the gateway lists, as the page does."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient
from tests.harness.cluster_loads import stored_rows
from tests.harness.gateway_place import ALICE, BERTA, DORA, Place, code_of

from caudal.application import find_application
from caudal.datasets.cluster_place import locate
from caudal.formats.digest import digest
from caudal.formats.job import Request, Text
from caudal.formats.loads import LoadRequest, LoadSource
from caudal.formats.outcomes import digest_of_digests
from caudal.formats.quotas import Quotas
from caudal.gateway.audit import Audit

RATINGS = b"userId,movieId,rating,timestamp\n1,10,4.5,1100001009\n1,9,4.0,1100001009\n2,9,x,1\n"
SOURCE = {"table": "ratings", "name": "r.csv", "bytes": len(RATINGS), "digest": digest(RATINGS)}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "audit" / "g1.jsonl"


@pytest.fixture
def place(log: Path) -> Iterator[Place]:
    with Place(audit=Audit(log, "g1")) as made:
        yield made


def listed(client: TestClient, name: str) -> dict[str, Any]:
    found = client.get("/applications").json()["applications"]
    return next(one for one in found if one["name"] == name)


def request_of(client: TestClient, dataset: str, app: str = "movies") -> dict[str, Any]:
    load = {"dataset": dataset, "sources": [SOURCE], "again": False}
    return {"application": listed(client, app), "options": {"batch_bytes": 8_000_000}, "load": load}


def load(client: TestClient, dataset: str) -> str:
    """Offer the file, create the job, send the only part, and end the table."""
    body = request_of(client, dataset)
    offer = client.post(f"/datasets/{dataset}/offers", json=body).json()
    assert (offer["new"], offer["version"]) == ([0], None)
    path = f"/jobs/{offer['job']}"
    assert client.put(path, json=body).status_code == 201
    asked: dict[str, str | int] = {"source": 0, "file": "r.csv", "last": "true"}
    text = {"content-type": "text/csv"}
    table = f"{path}/tables/ratings"
    cut = client.put(f"{table}/records/0", params=asked, content=RATINGS, headers=text).json()
    end = {"batches": 1, "bytes": cut["bytes"], "digest": digest_of_digests([cut["digest"]])}
    assert client.put(f"{table}/end", json=end).status_code == 201
    return str(offer["job"])


def names(client: TestClient) -> list[str]:
    return [f"{one['owner']}/{one['name']}" for one in client.get("/datasets").json()["datasets"]]


def test_the_shipped_applications_are_listed_without_queries(place: Place) -> None:
    found = place.client(DORA).get("/applications").json()["applications"]
    assert [one["name"] for one in found] == ["books", "movies"]
    for one in found:
        sent = Text.for_load(find_application(one["name"]))
        assert msgspec.convert(one, Text) == sent
        assert (one["queries"], one["parameters"]) == ([], {})
    assert code_of(place.client(token=None).get("/applications"))[0] == 401


def test_a_dataset_is_made_by_its_first_load(place: Place, log: Path) -> None:
    alice = place.client(ALICE)
    job = load(alice, "films")
    assert names(alice) == []  # whole or not at all
    place.work()
    assert alice.get(f"/jobs/{job}").json()["outcome"]["state"] == "done"
    made = alice.get("/datasets/films").json()
    assert (made["owner"], made["application"], made["version"]) == ("alice", "movies", 1)
    assert len(stored_rows(locate(place.store, "alice", "films"), "ratings")) == 2
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert ("create", "alice", job) in [(one["action"], one["owner"], one["job"]) for one in lines]
    source = msgspec.convert(SOURCE, LoadSource)
    sent = Request(  # as `caudal load movies` offers it
        Text.for_load(find_application("movies")), load=LoadRequest("films", (source,))
    )
    again = alice.post("/datasets/films/offers", content=msgspec.json.encode(sent)).json()
    assert (again["new"], again["skipped"][0]["reason"]) == ([], "version 1 loaded it")


def test_a_name_that_another_owner_has_is_free(place: Place) -> None:
    alice, berta = place.client(ALICE), place.client(BERTA)
    load(alice, "films")
    place.work()
    job = load(berta, "films")  # not refused: that would tell of the dataset of another
    place.work()
    assert berta.get(f"/jobs/{job}").json()["outcome"]["state"] == "done"
    assert (names(alice), names(berta)) == (["alice/films"], ["berta/films"])
    assert code_of(berta.get("/datasets/films?owner=alice")) == (404, "no_dataset")


def test_what_makes_no_dataset(place: Place) -> None:
    alice, dora = place.client(ALICE), place.client(DORA)
    load(alice, "films")
    place.work()
    other = alice.post("/datasets/films/offers", json=request_of(alice, "films", "books"))
    assert code_of(other) == (400, "bad_request")  # the table of the file is not one of books
    books = request_of(alice, "films", "books")
    books["load"]["sources"] = [{**SOURCE, "table": "books"}]
    taken = alice.post("/datasets/films/offers", json=books)
    assert code_of(taken) == (400, "bad_request")
    assert "films holds a dataset of movies, not of books" in taken.json()["error"]["message"]
    for name in ("..", ".hidden", "a b", "x" * 65):
        wrong = alice.post(f"/datasets/{name}/offers", json=request_of(alice, name))
        assert wrong.status_code in (400, 404), name
    body = request_of(dora, "mine")
    assert code_of(dora.post("/datasets/mine/offers", json=body)) == (403, "not_allowed")
    assert code_of(dora.put("/jobs/j", json=body)) == (403, "not_allowed")
    assert names(alice) == ["alice/films"]


def test_the_quota_of_jobs_bounds_new_datasets_too(place: Place) -> None:
    alice = place.client(ALICE)
    place.quotas = Quotas(jobs=1)
    load(alice, "films")
    place.service.census.round()
    body = request_of(alice, "others")
    job = alice.post("/datasets/others/offers", json=body).json()["job"]
    assert code_of(alice.put(f"/jobs/{job}", json=body)) == (429, "over_quota")
