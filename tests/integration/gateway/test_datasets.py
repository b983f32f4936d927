"""Datasets over HTTP: who sees, shares and deletes what; quotas; the audit log."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from starlette.testclient import TestClient
from tests.harness.datasets import append, new_dataset
from tests.harness.gateway_place import (
    ALICE,
    BERTA,
    CARLA,
    DORA,
    PEOPLE,
    Place,
    code_of,
    job_content,
)

from caudal.datasets.cluster_place import MOST_LISTED, MOST_READERS, locate
from caudal.formats.job import Request, Text
from caudal.formats.loads import LoadRequest, LoadSource, StreamPart
from caudal.formats.quotas import Quotas
from caudal.gateway.audit import Audit


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "audit" / "g1.jsonl"


@pytest.fixture
def place(log: Path) -> Iterator[Place]:
    with Place(audit=Audit(log, "g1")) as made:
        shelf = locate(made.store, "alice", "shelf").below
        append(shelf, new_dataset(shelf), 1, 2, 3)
        yield made


def names(client: TestClient) -> list[str]:
    return [f"{one['owner']}/{one['name']}" for one in client.get("/datasets").json()["datasets"]]


def test_only_the_owner_sees_its_dataset(place: Place) -> None:
    alice, berta = place.client(ALICE), place.client(BERTA)
    assert names(alice) == ["alice/shelf"]
    found = alice.get("/datasets/shelf").json()
    assert (found["application"], found["version"], found["rows"]) == ("numbers", 1, 3)
    assert found["tables"] == {"numbers": 3, "rejects": 0}
    assert names(berta) == []
    for path in ("/datasets/shelf", "/datasets/shelf?owner=alice", "/datasets/shelf/versions"):
        assert code_of(berta.get(path)) == (404, "no_dataset")
    assert code_of(berta.delete("/datasets/shelf?owner=alice")) == (404, "no_dataset")
    assert code_of(berta.put("/datasets/shelf/readers/berta")) == (404, "no_dataset")
    assert code_of(berta.get("/datasets?owner=alice")) == (403, "not_allowed")


def test_a_reader_reads_and_changes_nothing(place: Place) -> None:
    alice, berta = place.client(ALICE), place.client(BERTA)
    assert alice.put("/datasets/shelf/readers/berta").json()["readers"] == ["berta"]
    assert names(berta) == ["alice/shelf"]
    found = berta.get("/datasets/shelf?owner=alice").json()
    assert (found["rows"], found["readers"], found["own"]) == (3, [], False)
    assert alice.get("/datasets/shelf").json()["own"]
    versions = berta.get("/datasets/shelf/versions?owner=alice&last=1").json()["versions"]
    assert [one["number"] for one in versions] == [1]
    assert code_of(berta.delete("/datasets/shelf?owner=alice")) == (404, "no_dataset")
    assert alice.delete("/datasets/shelf/readers/berta").json()["readers"] == []
    assert code_of(berta.get("/datasets/shelf?owner=alice")) == (404, "no_dataset")


def test_sharing_is_bounded(place: Place) -> None:
    alice, shelf = place.client(ALICE), locate(place.store, "alice", "shelf")
    for number in range(MOST_READERS):
        shelf.share(f"reader{number}")
    answer = alice.put("/datasets/shelf/readers/berta")
    assert code_of(answer) == (400, "bad_request")
    assert "unshare it from one of them first" in answer.json()["error"]["message"]
    assert alice.put("/datasets/shelf/readers/reader3").status_code == 200
    assert alice.delete("/datasets/shelf/readers/reader3").status_code == 200
    assert alice.put("/datasets/shelf/readers/berta").status_code == 200


def test_a_list_has_ones_own_datasets_first_and_some_of_others(place: Place) -> None:
    berta = place.client(BERTA)
    own = locate(place.store, "berta", "mine").below
    append(own, new_dataset(own), 1)
    locate(place.store, "alice", "shelf").share("berta")
    assert names(berta) == ["berta/mine", "alice/shelf"]
    assert not berta.get("/datasets").json()["more"]
    for number in range(MOST_LISTED + 1):  # nothing bounded the previous version
        place.store.create(f"shared/berta/carla/shelf{number}/000000", b"{}")
    assert names(berta) == ["berta/mine", "alice/shelf"]
    assert berta.get("/datasets").json()["more"]


def test_sharing_counts_as_stored(place: Place) -> None:
    alice = place.client(ALICE)
    place.quotas = Quotas(stored="1MB")
    place.service.census.round()
    used = alice.get("/quotas").json()["owners"]["alice"]["stored"]["used"]
    assert alice.put("/datasets/shelf/readers/berta").status_code == 200
    shared = alice.get("/quotas").json()["owners"]["alice"]["stored"]["used"]
    assert shared == used + 2 * 4096
    place.service.census.round()
    assert alice.get("/quotas").json()["owners"]["alice"]["stored"]["used"] == shared
    place.quotas = Quotas(stored=str(shared))
    place.service.census.round()
    answer = alice.put("/datasets/shelf/readers/carla")
    assert code_of(answer) == (429, "over_quota")
    assert answer.json()["error"]["quota"] == "stored"
    assert alice.get("/datasets/shelf").json()["readers"] == ["berta"]
    assert alice.put("/datasets/shelf/readers/berta").status_code == 200
    assert code_of(alice.put("/datasets/none/readers/carla")) == (404, "no_dataset")


def test_a_dataset_of_an_earlier_version_keeps_no_sql(place: Place) -> None:
    answer = place.client(ALICE).get("/datasets/shelf/tables")
    assert code_of(answer) == (400, "bad_request")
    assert "earlier version" in answer.json()["error"]["message"]
    berta = place.client(BERTA).get("/datasets/shelf/tables?owner=alice")
    assert code_of(berta) == (404, "no_dataset")


def test_rights(place: Place) -> None:
    dora, carla = place.client(DORA), place.client(CARLA)
    assert code_of(dora.put("/datasets/shelf/readers/berta")) == (403, "not_allowed")
    assert code_of(dora.delete("/datasets/shelf")) == (403, "not_allowed")
    assert code_of(dora.post("/datasets/shelf/offers", content=b"{}")) == (403, "not_allowed")
    assert carla.get("/datasets?owner=alice").json()["datasets"][0]["name"] == "shelf"
    assert carla.get("/datasets/shelf?owner=alice").status_code == 200
    assert code_of(carla.put("/datasets/shelf/readers/carla")) == (403, "not_allowed")
    assert carla.delete("/datasets/shelf?owner=alice").json()["rows"] == 3
    assert names(place.client(ALICE)) == []


def test_deletion_and_what_the_audit_log_says(place: Place, log: Path) -> None:
    alice = place.client(ALICE)
    alice.put("/datasets/shelf/readers/berta")
    alice.delete("/datasets/shelf/readers/berta")
    alice.delete("/datasets/shelf")
    assert code_of(alice.get("/datasets/shelf")) == (404, "no_dataset")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    told = [(line["action"], line["owner"], line["dataset"]) for line in lines]
    assert told == [
        ("share", "alice", "shelf"),
        ("unshare", "alice", "shelf"),
        ("delete", "alice", "shelf"),
        ("refuse", "alice", "shelf"),
    ]


def test_stored_bytes_of_a_dataset_count(place: Place) -> None:
    alice = place.client(ALICE)
    place.quotas = Quotas(stored="1MB")
    place.service.census.round()
    used = alice.get("/quotas").json()["owners"]["alice"]["stored"]["used"]
    assert used >= 4096 * 6  # dataset.json, two versions, their logs, a file
    place.quotas = Quotas(stored=str(used))
    request = load_request("shelf2")
    job = alice.post("/datasets/shelf2/offers", content=job_content(request)).json()["job"]
    assert alice.put(f"/jobs/{job}", content=job_content(request)).status_code == 201
    place.service.census.round()
    answer = alice.put(
        f"/jobs/{job}/tables/people/batches/0",
        content=b"x" * 100,
        headers={"content-type": "application/vnd.caudal.batch"},
    )
    assert code_of(answer) == (429, "over_quota")
    assert answer.json()["error"]["quota"] == "stored"
    alice.delete("/datasets/shelf")
    place.service.census.round()
    assert alice.get("/quotas").json()["owners"]["alice"]["stored"]["used"] < used


SOURCE = LoadSource("people", "/home/people.csv", 10, "0" * 32, "people.csv")


def load_request(dataset: str, *sources: LoadSource) -> Request:
    text = Text("tiny", "", (PEOPLE,), ())
    return Request(text, load=LoadRequest(dataset, sources or (SOURCE,)))


@pytest.mark.parametrize(
    ("request_", "path", "words"),
    [
        (load_request("..", SOURCE), "x", "cannot be the name of a dataset"),
        (load_request("x", msgspec.structs.replace(SOURCE, table="other")), "x", "no table"),
        (load_request("x", msgspec.structs.replace(SOURCE, digest="z")), "x", "no digest"),
        (load_request("x", msgspec.structs.replace(SOURCE, name="n" * 5000)), "x", "long name"),
        (
            load_request("x", msgspec.structs.replace(SOURCE, part=StreamPart(-1, "0" * 32, b""))),
            "x",
            "cannot be one",
        ),
        (Request(Text("tiny", "", (PEOPLE,), ())), "x", "loads nothing into x"),
        (load_request("y"), "x", "loads nothing into x"),
    ],
)
def test_a_bad_offer_is_refused(place: Place, request_: Request, path: str, words: str) -> None:
    answer = place.client().post(f"/datasets/{path}/offers", content=job_content(request_))
    assert answer.status_code in (400, 404)
    assert words in answer.json()["error"]["message"]


def test_the_id_of_a_load_is_derived_and_not_shared_by_owners(place: Place) -> None:
    content = job_content(load_request("new"))
    offers = [
        place.client(token).post("/datasets/new/offers", content=content).json()
        for token in (ALICE, ALICE, BERTA)
    ]
    assert offers[0] == offers[1] == {**offers[0], "new": [0], "skipped": [], "version": None}
    assert offers[2]["job"] != offers[0]["job"]


def test_a_load_into_the_dataset_of_another_application(place: Place) -> None:
    answer = place.client().post(
        "/datasets/shelf/offers", content=job_content(load_request("shelf"))
    )
    assert code_of(answer) == (400, "bad_request")
    assert "shelf holds a dataset of numbers, not of tiny" in answer.json()["error"]["message"]
