"""Results over HTTP: every representation, and what is said while there is none."""

import base64
import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.harness.damaging_store import flipped, spread
from tests.harness.gateway_place import ADULT_ROWS, ALICE, Place, code_of, create, send
from tests.harness.gateway_server import running
from tests.harness.peak_memory import peak_mib
from tests.harness.waiting import GUARD_SECONDS

from caudal.errors import FormatError
from caudal.formats import frame, mapped, outputs
from caudal.formats.outputs import Whose
from caudal.formats.quotas import Quota
from caudal.gateway.accept_header import OFFERED, choose
from caudal.jobs import status
from caudal.jobs.stored_results import StoredResult
from caudal.worker.compute import LocalCompute

URL = "/jobs/j/results/adults"


@pytest.fixture
def answered(place: Place) -> Place:
    """The adults are known, the visits have not come."""
    client = place.client()
    create(client)
    send(client, "people")
    place.work()
    return place


def rows_of(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_every_representation_holds_the_same_rows(answered: Place) -> None:
    client = answered.client()

    def get(accept: str) -> bytes:
        answer = client.get(URL, headers={"accept": accept})
        assert answer.status_code == 200
        assert answer.headers["content-type"].partition(";")[0] == accept
        return answer.content

    stream = pa.ipc.open_stream(get("application/vnd.apache.arrow.stream")).read_all()
    index, stored = outputs.decode_result(get("application/vnd.caudal.result"), "")
    parquet = pq.read_table(io.BytesIO(get("application/vnd.apache.parquet")))
    text = list(csv.reader(io.StringIO(get("text/csv").decode())))
    rows = client.get(URL, headers={"accept": "application/json"}).json()
    assert rows_of(stream) == rows_of(stored) == rows_of(parquet) == ADULT_ROWS
    assert [tuple(row.values()) for row in rows] == ADULT_ROWS
    assert text == [["name", "age"], *([name, str(age)] for name, age in ADULT_ROWS)]
    assert (index.query, index.title) == ("adults", "Adults")


def test_the_rejects_report_is_a_result(answered: Place) -> None:
    client = answered.client()
    assert code_of(client.get("/jobs/j/rejects")) == (404, "not_ready")
    send(client, "visits")
    answered.work()
    rows = client.get("/jobs/j/rejects", headers={"accept": "application/json"}).json()
    assert [(row["table"], row["reason"], row["rows"]) for row in rows] == [("people", "no age", 1)]


@pytest.fixture
def reported(place: Place) -> Iterator[Place]:
    """All tables are computed by a worker of a cluster."""
    client, compute = place.client(), LocalCompute()
    create(client)
    send(client, "people")
    send(client, "visits")
    place.ports = replace(place.ports, compute=compute)
    place.work()
    yield place
    compute.close()


def test_only_json_has_the_records_of_a_rejects_report(reported: Place) -> None:
    """Readers of the other forms compare columns."""
    client, url = reported.client(), "/jobs/j/rejects"
    rows = client.get(url, headers={"accept": "application/json"}).json()
    assert rows[0]["first"] == [{"file": "people.csv", "line": 4, "record": "Cid,x"}]
    stream = client.get(url, headers={"accept": "application/vnd.apache.arrow.stream"}).content
    assert pa.ipc.open_stream(stream).read_all().schema == outputs.REPORT
    parquet = client.get(url, headers={"accept": "application/vnd.apache.parquet"}).content
    assert pq.read_table(io.BytesIO(parquet)).column("first").to_pylist() == [
        [{"file": "people.csv", "line": 4}]
    ]
    text = client.get(url, headers={"accept": "text/csv"}).text
    assert "line" in text
    assert "record" not in text
    for window, rows in (("?offset=0&limit=1", 1), ("?offset=1&limit=9", 0)):
        found = client.get(url + window, headers={"accept": "application/json"}).json()
        assert [one["first"][0]["record"] for one in found] == ["Cid,x"] * rows


def test_a_report_of_a_worker_that_keeps_no_records(reported: Place) -> None:
    client, key = reported.client(), "jobs/j/run0/results/rejects"
    index, rows = outputs.decode_result(reported.store.read(key), key)
    reported.store.delete(key)
    reported.store.create(key, outputs.encode_result(index.whose, index.title, rows))
    found = client.get("/jobs/j/rejects", headers={"accept": "application/json"}).json()
    assert found[0]["first"] == [{"file": "people.csv", "line": 4, "record": None}]


def test_while_there_is_no_answer(answered: Place) -> None:
    client = answered.client()
    assert code_of(client.get("/jobs/j/results/places")) == (404, "not_ready")
    assert code_of(client.get("/jobs/j/results/nothing")) == (404, "no_query")
    assert code_of(client.get(URL, headers={"accept": "image/png"})) == (406, "not_acceptable")
    client.delete("/jobs/j")
    assert code_of(client.get("/jobs/j/results/places")) == (410, "ended")
    assert client.get(URL).status_code == 200, "what was answered stays"


def test_a_flipped_bit_never_leaves(answered: Place) -> None:
    """In no representation: the object is named, and no row of it is sent."""
    client, store, key = answered.client(), answered.store, "jobs/j/run0/results/adults"
    sound = store.read(key)
    for number, bit in enumerate(spread(8 * len(sound), 150)):
        store.delete(key)
        store.create(key, flipped(sound, bit))
        accept = OFFERED[number % len(OFFERED)]
        answer = client.get(URL, headers={"accept": accept})
        assert code_of(answer) == (500, "damaged"), (bit, accept)
        assert key in answer.json()["error"]["message"]
        assert client.get("/jobs/j?small=true").json()["small"] == {}


def test_the_result_of_another_query_or_run_never_leaves(answered: Place) -> None:
    client, store, key = answered.client(), answered.store, "jobs/j/run0/results/adults"
    index, rows = outputs.decode_result(store.read(key), key)
    for whose in (
        Whose("j", "run0", "places"),
        Whose("j", "run9", "adults"),
        Whose("i", "run0", "adults"),
    ):
        store.delete(key)
        store.create(key, outputs.encode_result(whose, index.title, rows))
        answer = client.get(URL)
        assert code_of(answer) == (500, "damaged")
        assert f"is a result of {whose}, not of adults of job j, run run0" in answer.text


@pytest.mark.parametrize("kind", ["outcome.json", "tables/people/end.json"])
def test_events_are_never_made_of_a_damaged_object(answered: Place, kind: str) -> None:
    client, store, key = answered.client(), answered.store, f"jobs/j/run0/{kind}"
    if kind == "outcome.json":
        client.delete("/jobs/j")
    sound = store.read(key)
    for bit in spread(8 * len(sound), 20):
        store.delete(key)
        store.create(key, flipped(sound, bit))
        for path in ("/jobs/j", "/jobs/j/events"):
            answer = client.get(path)
            assert code_of(answer) == (500, "damaged")
            assert key in answer.text


def large(reads: list[tuple[int, int]], bad_read: int | None = None) -> tuple[bytes, StoredResult]:
    """A result of several pieces, and the same where it lies; one reading of it goes wrong."""
    whose = Whose("j", "run0", "adults")
    data = outputs.encode_result(whose, "", pa.table({"n": list(range(999))}))

    def read(offset: int, length: int) -> bytes:
        reads.append((offset, length))
        piece = data[offset : offset + length]
        return flipped(piece, 5) if len(reads) - 1 == bad_read else piece

    return data, StoredResult(
        "the key", outputs.result_head(frame.of_bytes(data), whose, "k"), read
    )


def taken(found: StoredResult) -> tuple[bytes, str]:
    """What was given of a result, and the error that ended it."""
    given = bytearray()
    try:
        for piece in found.pieces(size=100):
            given += piece
    except FormatError as error:
        return bytes(given), str(error)
    return bytes(given), ""


def test_a_large_result_is_checked_before_its_first_piece_leaves() -> None:
    reads: list[tuple[int, int]] = []
    data, found = large(reads)
    given, error = taken(found)
    assert (found.head + given, error) == (data, "")
    assert max(length for _, length in reads) == 100
    assert found.whole() == data
    count = (len(reads) - 1) // 2  # of pieces, each read twice
    assert count > 5
    for bad in range(2 * count):
        part, error = taken(large([], bad)[1])
        assert error.startswith("the key is damaged")
        assert len(part) < len(given), "never whole"
        assert not part or bad >= count, "damaged where it lies: not a byte leaves"


def replace_result(place: Place, rows: pa.Table, *, light: bool = True) -> bytes:
    """Put another result in the place of the adults; not `light`: as one record batch."""
    key, whose = "jobs/j/run0/results/adults", Whose("j", "run0", "adults")
    place.store.delete(key)
    if light:
        data = outputs.encode_result(whose, "", rows)
    else:
        body = bytearray()
        index = outputs.ResultHeader("adults", "", mapped.append_stream(body, rows), "j", "run0")
        data = frame.encode(outputs.RESULT_MAGIC, index) + bytes(body)
    place.store.create(key, data)
    return data


FORMS = ("application/json", "text/csv", "application/vnd.apache.parquet")
WIDE = 200_000, 2_000  # rows, and characters of each: 400 MB unpacked, and little as it lies


@pytest.mark.parametrize("form", FORMS)
def test_a_large_result_is_converted_in_pieces(answered: Place, form: str) -> None:
    """What is held at once is a small part of what is sent."""
    rows, wide = WIDE
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), ["x" * wide])
    replace_result(answered, pa.table({"n": range(rows), "t": texts.cast(pa.string())}))
    del texts
    pa.default_memory_pool().release_unused()
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here on
    before, sent = peak_mib(), 0
    with running(answered) as server, httpx.stream(
        "GET", server.url + URL, headers={"authorization": f"Bearer {ALICE}", "accept": form},
        timeout=GUARD_SECONDS,
    ) as answer:  # fmt: skip
        assert answer.status_code == 200
        for piece in answer.iter_raw():
            sent += len(piece)
    assert sent > (400_000_000 if "parquet" not in form else 1_000)
    assert peak_mib() - before < 130


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["one batch", "one row", "a list of small values"])
def test_what_cannot_be_converted_in_pieces_is_refused(
    answered: Place, form: str, kind: str
) -> None:
    if kind == "one batch":
        data = replace_result(answered, pa.table({"t": ["x" * 1000] * 50_000}), light=False)
    elif kind == "one row":
        data = replace_result(answered, pa.table({"t": ["x" * (40 << 20)]}))
    else:
        values = pa.array(np.zeros(4 << 20, np.bool_))  # half a megabyte, or 256 as values
        data = replace_result(
            answered, pa.table({"t": pa.ListArray.from_arrays([0, len(values)], values)})
        )
    client = answered.client()
    answer = client.get(URL, headers={"accept": form})
    if kind.startswith("a list") and "parquet" in form:
        assert answer.status_code == 200, "nothing becomes a Python value there"
    else:
        assert code_of(answer) == (406, "not_acceptable")
        assert "ask for" in answer.json()["error"]["message"]
    whole = client.get(URL, headers={"accept": "application/vnd.caudal.result"})
    assert whole.content == data
    assert answered.service.shares.held("alice", Quota.UPLOADS) == 0


def test_conversions_of_one_owner_leave_room_for_others(answered: Place) -> None:
    """They hold room like bodies that come in, and give it back, also when nobody reads on."""
    shares = answered.service.shares
    most = shares.limit("alice", Quota.UPLOADS)
    assert most is not None
    answered.service.bodies._seconds = 0.0  # nobody waits for room
    headers = {"authorization": f"Bearer {ALICE}"}
    with running(answered) as server, httpx.Client(base_url=server.url, headers=headers) as client:

        def statuses() -> list[int]:
            return [client.get(URL, headers={"accept": one}).status_code for one in FORMS]

        shares.take("alice", Quota.UPLOADS, most)
        assert statuses() == [429] * 3
        shares.give_back("alice", Quota.UPLOADS, most)
        assert statuses() == [200] * 3
    assert shares.held("alice", Quota.UPLOADS) == 0


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (None, "application/vnd.apache.arrow.stream"),
        ("*/*", "application/vnd.apache.arrow.stream"),
        ("text/*", "text/csv"),
        ("application/json;q=0.2, text/csv;q=0.9", "text/csv"),
        ("TEXT/CSV ; charset=utf-8", "text/csv"),
        ("application/json;q=0", None),
        ("application/json;q=x", None),
        ("text/html, */*;q=0.1", "application/vnd.apache.arrow.stream"),
        (",;,", None),
    ],
)
def test_the_client_chooses(accept: str | None, chosen: str | None) -> None:
    assert choose(accept) == chosen


def test_small_results_come_with_the_status_of_who_asks(answered: Place) -> None:
    client = answered.client()
    stored = client.get(URL, headers={"accept": "application/vnd.caudal.result"}).content
    assert client.get("/jobs/j").json()["small"] == {}
    found = client.get("/jobs/j?small=true").json()
    assert {name: base64.b64decode(one) for name, one in found["small"].items()} == {
        "adults": stored
    }
    assert client.get("/jobs/j?small=x").json()["small"] == {}


def test_a_status_brings_no_more_than_it_should(
    answered: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(
        answered.client().get(URL, headers={"accept": "application/vnd.caudal.result"}).content
    )
    for room, found in ((size, ["adults"]), (size - 1, [])):
        monkeypatch.setattr(status, "SMALL_BYTES", room)
        assert list(answered.client().get("/jobs/j?small=true").json()["small"]) == found
