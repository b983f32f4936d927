"""Previews: every row once, in the order of batches, on any gateway, and never more than was."""

import json
from dataclasses import replace

import httpx
import pytest
from starlette.testclient import TestClient
from tests.harness.gateway_place import (
    ADULT_ROWS,
    ALICE,
    Place,
    batches,
    code_of,
    create,
    put_batch,
    send,
)
from tests.harness.gateway_server import running
from tests.harness.waiting import GUARD_SECONDS

from caudal.formats.mapped import MappedReader
from caudal.jobs import execute
from caudal.jobs.janitor import Janitor
from caudal.jobs.preview import Aborted, Complete, Preview, Rows, Waiting

URL = "/jobs/j/results/adults/preview"


def events(text: str) -> list[tuple[str, str | None, dict[str, object]]]:
    """(name, id, data) of each event of a stream."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if line[:1] != ":")
        if lines:
            found.append((lines["event"], lines.get("id"), json.loads(lines["data"])))
    return found


def opened(place: Place) -> Preview:
    return place.service.gateway.preview("j", "alice", "adults")


@pytest.fixture
def client(place: Place) -> TestClient:
    client = place.client()
    create(client)
    return client


def test_a_batch_is_shown_when_all_before_it_are_mapped(place: Place, client: TestClient) -> None:
    preview = opened(place)
    first, second, third = batches("people")
    assert put_batch(client, "people", 1, second) == 201
    place.work()
    assert isinstance(preview.step(0), Waiting)
    assert put_batch(client, "people", 0, first) == 201
    assert isinstance(preview.step(0), Waiting), "it has arrived, and is not mapped"
    place.work()
    steps = [preview.step(number) for number in range(3)]
    assert [type(step) for step in steps] == [Rows, Rows, Waiting]
    assert put_batch(client, "people", 2, third) == 201
    place.work()
    assert isinstance(preview.step(2), Rows)
    assert isinstance(preview.step(3), Waiting), "nobody said that this was all"


def test_the_stream_holds_the_rows_of_the_answer_and_ends(place: Place, client: TestClient) -> None:
    send(client, "people")
    place.work()
    found = events(client.get(URL).text)
    assert [(name, identity) for name, identity, _ in found] == [
        ("rows", "0"),
        ("rows", "1"),
        ("rows", "2"),
        ("complete", None),
    ]
    rows = [tuple(row.values()) for _, _, data in found[:3] for row in data["rows"]]  # type: ignore[attr-defined]
    assert sorted(rows) == sorted(ADULT_ROWS)
    assert found[-1][2] == {"batches": 3}


def test_rows_are_seen_while_the_table_still_arrives(place: Place, client: TestClient) -> None:
    """Over a real connection: each batch is read before the next one is sent."""
    headers = {"authorization": f"Bearer {ALICE}"}
    with (
        running(place) as server,
        httpx.stream("GET", server.url + URL, headers=headers, timeout=GUARD_SECONDS) as stream,
    ):
        lines = (line for line in stream.iter_lines() if line and line[0] != ":")
        for number, data in enumerate(batches("people")):
            assert put_batch(client, "people", number, data) == 201
            place.work()
            assert next(lines) == f"id: {number}"
            assert next(lines) == "event: rows"
            assert json.loads(next(lines).removeprefix("data: "))["batch"] == number


def test_another_gateway_goes_on_behind_the_last_event(place: Place, client: TestClient) -> None:
    send(client, "people")
    place.work()
    other = place.client(service=place.another("g2"))
    found = events(other.get(URL, headers={"last-event-id": "1"}).text)
    assert [(name, identity) for name, identity, _ in found] == [("rows", "2"), ("complete", None)]
    assert [name for name, *_ in events(other.get(URL, headers={"last-event-id": "2"}).text)] == [
        "complete"
    ]
    for wrong in ("x", "-1", "1.5", "9" * 40):
        answer = other.get(URL, headers={"last-event-id": wrong})
        assert code_of(answer) == (400, "bad_request")


def test_it_is_complete_only_with_the_answer(place: Place, client: TestClient) -> None:
    preview = opened(place)
    send(client, "people")
    for _ in range(3):
        execute.take_turn(place.ports, place.consumer)
    assert isinstance(preview.step(2), Rows)
    assert isinstance(preview.step(3), Waiting)
    place.work()
    assert preview.step(3) == Complete(3)
    assert preview.step(4) == Aborted("table people ended with 3 batches: too many were shown")


def test_a_job_that_ends_otherwise_aborts_it(place: Place, client: TestClient) -> None:
    preview = opened(place)
    client.delete("/jobs/j")
    step = preview.step(0)
    assert isinstance(step, Aborted)
    ((name, _, data),) = events(client.get(URL).text)
    assert name == "aborted"
    assert data["reason"] == "the client cancelled it"
    assert step.outcome


def test_what_was_cleaned_away_is_not_shown_as_nothing(place: Place, client: TestClient) -> None:
    for table in ("people", "visits"):
        send(client, table)
    place.work()
    preview = opened(place)
    Janitor(place.ports).round()
    step = preview.step(1)
    assert isinstance(step, Aborted)
    assert step.outcome
    assert step.outcome.state == "done"
    assert preview.step(3) == Complete(3), "all was shown before"


def test_a_new_life_under_the_same_id_is_another_preview(place: Place, client: TestClient) -> None:
    preview = opened(place)
    place.store.delete("jobs/j/job.json")
    assert isinstance(preview.step(0), Aborted)
    create(client)
    assert isinstance(preview.step(0), Aborted)


def test_only_queries_that_filter_have_one(client: TestClient) -> None:
    assert code_of(client.get("/jobs/j/results/places/preview")) == (404, "no_preview")
    assert code_of(client.get("/jobs/j/results/rejects/preview")) == (404, "no_preview")
    assert code_of(client.get("/jobs/j/results/nothing/preview")) == (404, "no_query")


def test_events_tell_what_is_done_and_how_it_ended(place: Place, client: TestClient) -> None:
    for table in ("people", "visits"):
        send(client, table)
    place.work()
    found = events(client.get("/jobs/j/events").text)
    assert [name for name, *_ in found] == ["progress", *["query-done"] * 3, "outcome"]
    assert [data["query"] for name, _, data in found if name == "query-done"] == [
        "adults",
        "places",
        "rejects",
    ]
    assert found[-1][2]["state"] == "done"


def test_streams_end_when_the_gateway_stops(place: Place, client: TestClient) -> None:
    place.stopping = True
    assert client.get("/jobs/j/events").text == ""
    assert client.get(URL).text == ""
    assert code_of(client.get("/readyz")) == (503, "unavailable")


def test_a_preview_that_fails_ends_and_the_job_does_not(place: Place, client: TestClient) -> None:
    from caudal.errors import QueryError

    class Failing:
        def __getattr__(self, name: str) -> object:
            raise QueryError("too much memory")

    send(client, "people")
    place.work()
    preview = opened(place)
    failing = replace(preview, ports=replace(preview.ports, compute=Failing()))  # type: ignore[arg-type]
    step = failing.step(0)
    assert isinstance(step, Aborted)
    assert "too much memory" in step.reason
    assert client.get("/jobs/j").json()["outcome"] is None


def test_a_batch_that_is_too_large_is_refused_before_it_is_read(
    place: Place, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(client, "people")
    place.work()
    shown = opened(place)
    assert isinstance(shown.step(0), Rows)

    def read(*_: object) -> list[bytes]:
        raise AssertionError("it was read")

    monkeypatch.setattr(MappedReader, "streams", read)
    monkeypatch.setattr("caudal.jobs.preview._MOST_INPUT_BYTES", 100)
    step = shown.step(0)
    assert isinstance(step, Aborted)
    assert "batch 0 is too large for a preview: wait for the answer" in step.reason
