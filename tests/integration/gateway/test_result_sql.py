"""SELECTs over the results of a job."""

import io
from collections.abc import Iterator
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient
from tests.harness.gateway_place import ALICE, BERTA, DORA, Answer, Place, code_of, create, send

from caudal.formats import outputs, streams
from caudal.formats.keys import Keys, Task
from caudal.formats.outputs import Whose
from caudal.gateway import result_sql
from caudal.jobs.stored_results import StoredResult

EACH_TWICE = (  # DuckDB would plan it for hours
    "WITH a0 AS (SELECT name AS k FROM adults), "
    + ", ".join(f"a{n} AS (SELECT x.k FROM a{n - 1} x, a{n - 1} y)" for n in range(1, 18))
    + " SELECT count(*) FROM a17"
)


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """A job that is done: `adults` and `places`."""
    with Place() as made:
        client = made.client()
        create(client)
        send(client, "people")
        send(client, "visits")
        made.work()
        yield made


def ask(client: TestClient, sql: str, accept: str = "application/json", **values: object) -> Answer:
    body = {"sql": sql, "parameters": values}
    return client.post("/jobs/j/sql", json=body, headers={"accept": accept})


def test_rows_columns_and_parameters(place: Place) -> None:
    alice = place.client(ALICE)
    found = ask(alice, "SELECT name, age * 2 AS twice FROM adults WHERE age > $a;", a=35).json()
    assert found["rows"] == [{"name": "Ann", "twice": 80}, {"name": "Hal", "twice": 180}]
    assert found["columns"] == [
        {"name": "name", "type": "string"},
        {"name": "twice", "type": "int32"},
    ]
    joined = ask(alice, "SELECT count(*) AS n FROM Adults, places").json()
    assert joined["rows"] == [{"n": 10}]
    assert not joined["cut"]
    long = ask(alice, "SELECT unnest(range(20000)) AS n").json()
    assert (len(long["rows"]), long["cut"]) == (10_000, True)


def test_other_forms(place: Place) -> None:
    alice = place.client(ALICE)
    body = {"sql": "SELECT name FROM adults LIMIT 1"}
    csv = alice.post("/jobs/j/sql", json=body, headers={"accept": "text/csv"})
    assert csv.text.splitlines() == ["name", "Fay"]
    form = {"accept": "application/vnd.apache.parquet"}
    parquet = alice.post("/jobs/j/sql", json=body, headers=form)
    assert pq.read_table(io.BytesIO(parquet.content)).to_pydict() == {"name": ["Fay"]}
    assert code_of(ask(alice, "SELECT 1", "image/png")) == (406, "not_acceptable")


def test_a_mistake_is_shown_in_its_place(place: Place) -> None:
    answer = ask(place.client(ALICE), "SELECT name,\n  agee FROM adults")
    assert code_of(answer) == (422, "query_failed")
    assert answer.json()["error"]["message"].splitlines()[1:] == [
        "  line 2:   agee FROM adults",
        "            ^^^^",
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "COPY adults TO '/tmp/x'",
        "SELECT 1; SELECT 2",
        "SELECT * FROM people",
        "SET memory_limit = '1TB'",
    ],
)
def test_it_can_only_compute(place: Place, sql: str) -> None:
    assert code_of(ask(place.client(ALICE), sql))[0] in (400, 422)


def test_whose_results(place: Place) -> None:
    assert code_of(ask(place.client(BERTA), "SELECT * FROM adults")) == (404, "no_job")
    assert code_of(ask(place.client(DORA), "SELECT 1")) == (403, "not_allowed")


def test_an_answer_is_bounded(place: Place) -> None:
    alice = place.client(ALICE)
    answer = ask(alice, "SELECT repeat('x', 1000000) AS t FROM range(20)")
    assert code_of(answer) == (400, "bad_request")


def test_what_takes_too_much_costs_a_child_only(place: Place) -> None:
    alice = place.client(ALICE)
    answer = ask(alice, EACH_TWICE)
    assert code_of(answer) == (422, "query_failed")
    assert "more than" in answer.json()["error"]["message"]
    assert ask(alice, "SELECT count(*) AS n FROM adults").json()["rows"] == [{"n": 5}]


def stored(place: Place, **results: pa.Table) -> None:
    """A job with these results, as a worker may have stored them."""
    run = create(place.client())
    for name, rows in results.items():
        key = Keys("j", run, 4).output(Task("finish", name))
        place.store.create(key, outputs.encode_result(Whose("j", run, name), "", rows))


def zeros(count: int) -> pa.Table:
    return pa.table({"n": np.zeros(count, np.int64)})


@pytest.mark.parametrize(
    "rows",
    [
        zeros(24 << 20),  # 192 MiB of a few kilobytes
        pa.table({"n": pa.nulls(1 << 30)}),  # no bytes, but many rows
    ],
    ids=["bytes", "rows"],
)
def test_what_unpacks_to_much_is_refused_before_it_is_unpacked(rows: pa.Table) -> None:
    with Place() as place:
        stored(place, adults=rows)
        answer = ask(place.client(), "SELECT count(*) AS n FROM adults")
        assert code_of(answer) == (400, "bad_request")
        message = answer.json()["error"]["message"]
        assert "unpack" in message
        assert "download" in message


def test_results_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_sql, "MOST_UNPACKED", 1 << 20)
    with Place() as place:
        stored(place, adults=zeros(80_000), places=zeros(80_000))
        client = place.client()
        assert ask(client, "SELECT count(*) AS n FROM adults").json()["rows"] == [{"n": 80_000}]
        answer = ask(client, "SELECT count(*) AS n FROM adults, places")
        assert code_of(answer) == (400, "bad_request")


def test_a_gateway_unpacks_no_result_and_reads_one_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    locked: list[bool] = []
    unpack, pieces = streams.read_rows, StoredResult.pieces

    def noting(*given: object, **named: object) -> pa.Table:
        assert "slice" not in str(given[1]), "a stored result"
        return unpack(*given, **named)  # type: ignore[arg-type]

    with Place() as place:
        lock: Lock = place.service.result_sql._lock

        def read(one: StoredResult, *size: int) -> Iterator[bytes]:
            locked.append(lock.locked())
            return pieces(one, *size)

        stored(place, adults=zeros(8 << 20))  # as much as a result may be
        monkeypatch.setattr(streams, "read_rows", noting)
        monkeypatch.setattr(StoredResult, "pieces", read)
        found = ask(place.client(), "SELECT sum(n) AS n, count(*) AS c FROM adults").json()
        assert found["rows"] == [{"n": 0, "c": 8 << 20}]
        assert locked == [True]
