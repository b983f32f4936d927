"""A CSV file sent as text, part by part, as the page does: batches like those of any client."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient
from tests.harness.cluster_loads import stored_rows
from tests.harness.gateway_place import (
    ALICE,
    BERTA,
    DORA,
    PEOPLE,
    Answer,
    Place,
    code_of,
    create,
    job_content,
)

from caudal.datasets.cluster_place import locate
from caudal.formats.digest import digest
from caudal.formats.job import Options, Request, Text
from caudal.formats.loads import LoadRequest, LoadSource
from caudal.formats.outcomes import digest_of_digests
from caudal.formats.quotas import Quotas

TEXT = b"name,age\n" + b"".join(b'"P, %d",%d\n' % (n, n % 90) for n in range(50)) + b"Odd,x\n"
SIZE = 200


@pytest.fixture
def place() -> Iterator[Place]:
    with Place() as made:
        yield made


def part_of(client: TestClient, job: str, number: int, told: dict[str, Any] | None) -> Answer:
    """Send the part behind what was told last."""
    head, begin = (TEXT[: told["header"]], told["offset"]) if told else (b"", 0)
    where = {"offset": told["offset"], "line": told["line"]} if told else {}
    last = begin + SIZE >= len(TEXT)
    asked: dict[str, str | int] = {
        **where,
        "source": 0,
        "file": "people.csv",
        "last": str(last).lower(),
    }
    return client.put(
        f"/jobs/{job}/tables/people/records/{number}",
        params=asked,
        content=head + TEXT[begin : begin + SIZE],
        headers={"content-type": "text/csv"},
    )


def load_request() -> Request:
    source = LoadSource("people", "people.csv", len(TEXT), digest(TEXT))
    text = Text("tiny", "", (PEOPLE,), ())
    return Request(text, options=Options(batch_bytes=SIZE), load=LoadRequest("shelf", (source,)))


def offered(client: TestClient) -> str:
    """Offer the file and create the job of its load."""
    content = msgspec.json.encode(load_request())
    offer = client.post("/datasets/shelf/offers", content=content).json()
    assert offer["new"] == [0]
    create(client, load_request(), offer["job"])
    return str(offer["job"])


def load(client: TestClient) -> str:
    job = offered(client)
    told: dict[str, Any] | None = None
    parts: list[dict[str, Any]] = []
    while not told or told["offset"] < len(TEXT):
        first = part_of(client, job, len(parts), told)
        again = part_of(client, job, len(parts), told)
        assert (first.status_code, again.status_code) == (201, 200)
        assert first.json() == again.json()
        told = first.json()
        parts.append(told)
    total = digest_of_digests(one["digest"] for one in parts)
    end = {"batches": len(parts), "bytes": sum(one["bytes"] for one in parts), "digest": total}
    assert client.put(f"/jobs/{job}/tables/people/end", json=end).status_code == 201
    return job


def test_a_file_is_loaded_part_by_part(place: Place) -> None:
    alice = place.client(ALICE)
    job = load(alice)
    place.work()
    assert alice.get(f"/jobs/{job}").json()["outcome"]["state"] == "done"
    shelf = locate(place.store, "alice", "shelf")
    rows = stored_rows(shelf, "people")
    assert [one["name"] for one in rows] == [f"P, {n}" for n in range(50)]
    (rejected,) = stored_rows(shelf, "rejects")
    assert (rejected["line"], rejected["reason"]) == (52, "no age")
    told = alice.get("/datasets/shelf/tables").json()
    assert told["tables"]["people"] == {"name": "VARCHAR", "age": "INTEGER"}
    again = {**msgspec.to_builtins(load_request()), "application": told["application"]}
    answer = alice.post("/datasets/shelf/offers", json=again).json()
    assert answer["skipped"][0]["reason"] == "version 1 loaded it"


def test_the_id_of_a_load_cannot_be_taken(place: Place) -> None:
    alice, berta = place.client(ALICE), place.client(BERTA)
    content = msgspec.json.encode(load_request())
    job = alice.post("/datasets/shelf/offers", content=content).json()["job"]
    earlier = job.rpartition("-")[0]  # its id at gateways of the previous version, which is free
    create(berta, job=earlier)
    before = berta.put(f"/jobs/{job}", content=job_content())
    assert code_of(before) == (400, "bad_request")
    assert load(alice) == job
    assert berta.put(f"/jobs/{job}", content=job_content()).json() == before.json()
    place.work()
    assert alice.get(f"/jobs/{job}").json()["outcome"]["state"] == "done"
    assert berta.get(f"/jobs/{earlier}").status_code == 200


def test_what_may_not_be_sent(place: Place) -> None:
    alice = place.client(ALICE)
    job = offered(alice)
    assert code_of(part_of(place.client(BERTA), job, 0, None)) == (404, "no_job")
    assert code_of(part_of(place.client(DORA), job, 0, None)) == (403, "not_allowed")
    path = f"/jobs/{job}/tables/people/records/0"
    for content, words in (
        (b"name;age\nAnn;4\nBob;5\n", "semicolons"),
        (b"name,age\nAnn", "no record ends"),
    ):
        answer = alice.put(path, content=content, headers={"content-type": "text/csv"})
        assert code_of(answer) == (400, "bad_request")
        assert words in answer.json()["error"]["message"]
    assert code_of(alice.put(path, content=TEXT)) == (415, "unsupported_media_type")
    odd = alice.put(f"{path}?offset=x&line=1", content=TEXT, headers={"content-type": "text/csv"})
    assert code_of(odd) == (400, "bad_request")
    huge = {"content-type": "text/csv", "content-length": str(1 << 40)}
    assert code_of(alice.put(path, content=TEXT, headers=huge)) == (413, "too_large")


def test_parts_count_as_stored(place: Place) -> None:
    alice = place.client(ALICE)
    job = offered(alice)
    place.quotas = Quotas(stored="4KB")
    place.service.census.round()
    assert code_of(part_of(alice, job, 0, None)) == (429, "over_quota")
