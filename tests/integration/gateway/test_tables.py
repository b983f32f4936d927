"""Batches and ends over HTTP: the same again, other content, what is refused before it is read."""

from collections.abc import Iterator

import pytest
from tests.harness.gateway_place import (
    BATCH,
    BERTA,
    Answer,
    Place,
    batches,
    code_of,
    create,
    end_of,
    put_batch,
    send,
)

from caudal.formats import batch as batch_format
from caudal.formats import frame
from caudal.formats.outcomes import End, digest_of_digests
from caudal.formats.quotas import Quotas
from caudal.gateway.limits import GatewayLimits
from caudal.jobs.ports import Bounds
from caudal.jobs.shared_maps import facts_of

URL = "/jobs/j/tables/people/batches/0"
HEADERS = {"content-type": BATCH}


def test_a_batch_is_new_once(place: Place) -> None:
    client, data = place.client(), batches("people")[0]
    create(client)
    assert code_of(client.get(URL)) == (404, "no_batch")
    assert put_batch(client, "people", 0, data) == 201
    assert put_batch(place.client(service=place.another("g2")), "people", 0, data) == 200
    (digest,) = client.get(URL).json().values()
    assert digest == batch_format.check(data, "").digest
    assert sum(place.broker.depths().values()) == 2, "a repeat publishes again"


def test_the_path_and_the_index_must_agree(place: Place) -> None:
    client, (first, second, *_) = place.client(), batches("people")
    create(client)
    for path, data in ((URL, second), ("/jobs/j/tables/visits/batches/0", first)):
        answer = client.put(path, content=data, headers=HEADERS)
        assert code_of(answer) == (400, "bad_request")
        assert "not batch 0" in answer.json()["error"]["message"]


def test_other_content_under_the_same_number_is_a_conflict(place: Place) -> None:
    client = place.client()
    create(client)
    other = batch_format.encode(
        table="people", number=0, file="f", columns=("name", "age"), first_line=2, offset=9,
        newlines=1, data=b"Ivy,50\n",
    )  # fmt: skip
    assert put_batch(client, "people", 0, batches("people")[0]) == 201
    answer = client.put(URL, content=other, headers=HEADERS)
    assert code_of(answer) == (409, "conflict")
    assert "the file changed" in answer.json()["error"]["message"]


def damaged() -> Iterator[tuple[str, bytes]]:
    data = batches("people")[0]
    yield "nothing", b""
    yield "text", b"name,age\nAnn,40\n"
    yield "cut short", data[:-3]
    yield "only a head", data[:44]
    yield "a bit flipped", data[:-1] + bytes([data[-1] ^ 1])
    yield "more behind it", data + b"x"
    yield "a huge index", data[:8] + b"\xff\xff\xff\xff" + data[12:]
    for codec, size in (("none", 10**18), ("zstd", 10**18), ("zstd", 7), ("lzma", 7), ("none", -1)):
        index = batch_format.BatchHeader("people", 0, "f", ("a",), 2, 0, 1, size, "00", codec)
        yield f"{codec} {size}", frame.encode(batch_format.MAGIC, index) + b"abcdefg"


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in damaged()])
def test_what_is_no_batch_is_400_and_leaves_nothing(place: Place, data: bytes) -> None:
    client = place.client()
    create(client)
    assert code_of(client.put(URL, content=data, headers=HEADERS)) == (400, "bad_request")
    assert code_of(client.get(URL)) == (404, "no_batch")


def test_a_bomb_is_refused_by_what_it_says_before_it_is_unpacked() -> None:
    bomb = batch_format.encode(
        table="people", number=0, file="f", columns=("name", "age"), first_line=2, offset=9,
        newlines=1, data=b"\0" * (1 << 20),
    )  # fmt: skip
    assert len(bomb) < 1000
    with Place(bounds=Bounds(batch_bytes=1 << 19)) as place:
        client = place.client()
        create(client)
        answer = client.put(URL, content=bomb, headers=HEADERS)
        assert code_of(answer) == (400, "bad_request")
        assert "at most 524288" in answer.json()["error"]["message"]


def test_wrong_order_and_wrong_names(place: Place) -> None:
    client, data = place.client(), batches("people")[0]

    def put(path: str) -> Answer:
        return client.put(path, content=data, headers=HEADERS)

    assert code_of(put(URL)) == (404, "no_job")
    create(client)
    assert code_of(put("/jobs/j/tables/films/batches/0")) == (404, "no_table")
    for number in ("-1", "x", "1.0", "9" * 30, "²"):
        assert code_of(put(f"/jobs/j/tables/people/batches/{number}")) == (400, "bad_request")
    assert code_of(put("/jobs/j/tables/people/batches/999999999")) == (400, "bad_request")
    assert code_of(client.put(URL, content=data))[0] == 415
    send(client, "people")
    assert code_of(put("/jobs/j/tables/people/batches/3")) == (409, "conflict")
    client.delete("/jobs/j")
    assert code_of(put(URL)) == (410, "ended")


def test_an_end_is_new_once_and_another_one_is_a_conflict(place: Place) -> None:
    client, url = place.client(), "/jobs/j/tables/visits/end"
    create(client)
    end = end_of("visits")
    content = {"batches": end.batches, "bytes": end.bytes, "digest": end.digest}
    assert [client.put(url, json=content).status_code for _ in range(2)] == [201, 200]
    assert code_of(client.put(url, json={**content, "batches": 9})) == (409, "conflict")
    for wrong in ({}, {**content, "batches": "two"}, {**content, "bytes": -1}, [1]):
        assert code_of(client.put(url, json=wrong)) == (400, "bad_request")
    assert code_of(client.put("/jobs/j/tables/x/end", json=content)) == (404, "no_table")


def only_batch(data: bytes = b"Ann,40\n") -> bytes:
    return batch_format.encode(
        table="people", number=0, file="f", columns=("name", "age"), first_line=2, offset=9,
        newlines=1, data=data,
    )  # fmt: skip


def end_in(place: Place, table: str = "people") -> End | None:
    job_run = place.ports.job_runs.open("j")
    assert job_run is not None
    return facts_of(place.store, job_run).ending(table)


def test_the_only_batch_of_a_table_ends_it(place: Place) -> None:
    client, data = place.client(), only_batch()
    create(client)
    answers = [client.put(f"{URL}?only=true", content=data, headers=HEADERS) for _ in range(2)]
    assert [(one.status_code, one.json()["ended"]) for one in answers] == [(201, True), (200, True)]
    batch = batch_format.check(data, "")
    assert end_in(place) == End(1, batch.bytes, digest_of_digests([batch.digest]))
    assert put_batch(client, "people", 1, batches("people")[1]) == 409, "there is no second one"


def test_an_only_batch_that_is_refused_ends_nothing(place: Place) -> None:
    client, second = place.client(), batches("people")[1]
    create(client)
    wrong = {URL: only_batch() + b"x", "/jobs/j/tables/people/batches/1": second}
    for path, data in wrong.items():
        answer = client.put(f"{path}?only=true", content=data, headers=HEADERS)
        assert code_of(answer) == (400, "bad_request")
    assert end_in(place) is None
    assert put_batch(client, "people", 0, only_batch()) == 201
    other = client.put(f"{URL}?only=true", content=only_batch(b"Ivy,50\n"), headers=HEADERS)
    assert code_of(other) == (409, "conflict")


def test_a_table_that_ended_otherwise_takes_no_only_batch(place: Place) -> None:
    client = place.client()
    create(client)
    send(client, "people")
    answer = client.put(f"{URL}?only=true", content=batches("people")[0], headers=HEADERS)
    assert code_of(answer) == (409, "conflict")


def test_a_full_lane_refuses_and_says_when_to_come_again() -> None:
    with Place(bounds=Bounds(lane_limit=1)) as place:
        client, data = place.client(), batches("people")
        create(client)
        assert put_batch(client, "people", 0, data[0]) == 201
        answer = client.put("/jobs/j/tables/people/batches/1", content=data[1], headers=HEADERS)
        assert code_of(answer) == (429, "busy")
        assert int(answer.headers["retry-after"]) >= 1
        assert code_of(client.get("/jobs/j/tables/people/batches/1")) == (404, "no_batch")


def test_what_is_too_large_is_413() -> None:
    with Place(limits=GatewayLimits(batch_bytes=100, request_bytes=50)) as place:
        client = place.client()
        answers = [
            client.put("/jobs/j", content=b" " * 51),
            client.put(URL, content=b"x" * 101, headers=HEADERS),
            client.put("/jobs/j", content=iter([b" " * 30, b" " * 30])),
        ]
        assert [code_of(one) for one in answers] == [(413, "too_large")] * 3


def test_requests_of_one_token_are_limited_and_others_are_not() -> None:
    with Place(limits=GatewayLimits(rate_per_second=0.001, rate_burst=2)) as place:
        alice, berta = place.client(), place.client(BERTA)
        assert [alice.get("/jobs").status_code for _ in range(2)] == [200, 200]
        answer = alice.get("/jobs")
        assert code_of(answer) == (429, "rate_limited")
        assert int(answer.headers["retry-after"]) > 100
        assert berta.get("/jobs").status_code == 200
        assert alice.get("/healthz").status_code == 200


def test_too_many_requests_at_once_are_refused() -> None:
    with Place(limits=GatewayLimits(requests=0, streams=0)) as place:
        place.quotas = Quotas(requests=9, streams=9)
        assert code_of(place.client().get("/jobs")) == (429, "busy")
        assert code_of(place.client().get("/jobs/j/events")) == (429, "busy")
        assert place.client().get("/readyz").status_code == 200
