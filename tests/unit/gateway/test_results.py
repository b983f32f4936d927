"""Results over HTTP: every representation, and what is said while there is none."""

import csv
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.gateway.place import ADULT_ROWS, Place, code_of, create, send

from caudal.formats import outputs
from caudal.gateway.accepting import choose

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


def test_while_there_is_no_answer(answered: Place) -> None:
    client = answered.client()
    assert code_of(client.get("/jobs/j/results/places")) == (404, "not_ready")
    assert code_of(client.get("/jobs/j/results/nothing")) == (404, "no_query")
    assert code_of(client.get(URL, headers={"accept": "image/png"})) == (406, "not_acceptable")
    client.delete("/jobs/j")
    assert code_of(client.get("/jobs/j/results/places")) == (410, "ended")
    assert client.get(URL).status_code == 200, "what was answered stays"


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
