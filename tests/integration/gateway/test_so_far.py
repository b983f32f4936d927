"""Answers so far: rows that stay, looked at seldom, by any gateway."""

from dataclasses import dataclass, field, replace

import msgspec
import pytest
from starlette.testclient import TestClient
from tests.harness.gateway_place import (
    ADULT_ROWS,
    PEOPLE,
    VISITS,
    Place,
    batches,
    code_of,
    create,
    put_batch,
    send,
)
from tests.harness.hand_clock import HandClock
from tests.harness.waiting import GUARD_SECONDS

from caudal.client.growing import rows_of
from caudal.errors import QueryError
from caudal.formats.job import Options, Request, Text
from caudal.formats.replies import SoFar
from caudal.gateway.compute import SharedCompute
from caudal.gateway.growth import REST, Growths
from caudal.gateway.planner_process import PlanLimits
from caudal.gateway.planners import Planners
from caudal.jobs.so_far import Covered, GrowingQuery, RowsSoFar
from caudal.model import Query

BUSY = Query("busy", "Busy places", "SELECT place, count(*) AS n FROM visits JOIN people USING "
             "(name) GROUP BY place HAVING count(*) >= 3 ORDER BY n", "b")  # fmt: skip
ADULTS = Query("adults", "Adults", "SELECT name, age FROM people WHERE age > 17 ORDER BY age", "a")
MEAN = Query("mean", "Mean age", "SELECT sum(age) / count(*) AS mean FROM people", "m")
ASKED = Request(
    Text("tiny", "A tiny application", (PEOPLE, VISITS), (BUSY, ADULTS, MEAN)),
    options=Options(batch_bytes=30, partitions=2, group=2),
)
URL = "/jobs/j/results/busy/so-far"


@pytest.fixture
def client(place: Place) -> TestClient:
    client = place.client()
    create(client, ASKED)
    return client


def look(place: Place, query: str = "busy", known: Covered | None = None) -> RowsSoFar:
    growing = place.service.gateway.growing("j", "alice", query)
    return growing.rows(growing.covered(known or {}))


def test_a_look_that_takes_too_much_costs_a_child_only(place: Place, client: TestClient) -> None:
    send(client, "people")
    assert put_batch(client, "visits", 0, batches("visits")[0]) == 201
    place.work()
    growing = place.service.gateway.growing("j", "alice", "busy")
    covered = growing.covered({})
    planners = Planners(1, PlanLimits(memory_bytes=1, patience_seconds=GUARD_SECONDS))
    little = replace(growing, ports=replace(place.ports, compute=SharedCompute(planners)))
    try:
        with pytest.raises(QueryError, match="what the query shows early takes more than 0 MiB"):
            little.rows(covered)
    finally:
        planners.close()
    assert growing.rows(covered).covered == covered  # by a child with the usual limits


def test_only_growing_queries_have_one(client: TestClient) -> None:
    assert client.get("/jobs/j").json()["growing"] == ["busy", "adults"]
    assert code_of(client.get("/jobs/j/results/mean/so-far")) == (404, "no_preview")
    assert code_of(client.get("/jobs/j/results/rejects/so-far")) == (404, "no_preview")
    assert code_of(client.get("/jobs/j/results/none/so-far")) == (404, "no_query")
    for wrong in ("after=x", "after=-1", "form=csv"):
        assert code_of(client.get(f"{URL}?{wrong}")) == (400, "bad_request")


def test_rows_appear_as_batches_are_mapped_and_stay(place: Place, client: TestClient) -> None:
    first, *others = batches("visits")
    send(client, "people")
    assert put_batch(client, "visits", 0, first) == 201
    place.work()
    found = look(place)
    assert (dict(found.covered), found.rows.to_pylist()) == ({"people": 3, "visits": 1}, [])
    for number, data in enumerate(others, 1):
        assert put_batch(client, "visits", number, data) == 201
        place.work()
        found = look(place, known=found.covered)
    assert found.rows.to_pylist() == [{"place": "Rome"}]
    assert found.later == ("n",)


def test_a_batch_counts_when_all_before_it_are_mapped(place: Place, client: TestClient) -> None:
    first, second, _ = batches("people")
    assert put_batch(client, "people", 1, second) == 201
    place.work()
    assert look(place, "adults").rows.num_rows == 0
    assert put_batch(client, "people", 0, first) == 201
    assert dict(look(place, "adults").covered) == {"people": 0}, "it arrived, and is not mapped"
    place.work()
    found = look(place, "adults")
    assert dict(found.covered) == {"people": 2}
    rows = {tuple(row.values()) for row in found.rows.to_pylist()}
    assert rows < set(ADULT_ROWS)
    assert rows


def test_the_reply_holds_rows_or_a_stream_and_only_news(place: Place, client: TestClient) -> None:
    nothing = client.get(URL).json()
    assert (nothing["covered"], nothing["rows"], nothing["stream"]) == ({}, None, None)
    send(client, "people")
    for number, data in enumerate(batches("visits")):
        assert put_batch(client, "visits", number, data) == 201
    place.work()
    other = place.client(service=place.another("g2"))  # the first one rests
    reply = other.get(URL).json()
    assert (reply["rows"], reply["total"], reply["later"]) == ([{"place": "Rome"}], 1, ["n"])
    assert reply["columns"] == [{"name": "place", "type": "string"}]
    streamed = msgspec.json.decode(other.get(f"{URL}?form=stream").content, type=SoFar)
    assert rows_of(streamed).to_pylist() == [{"place": "Rome"}]
    known = sum(reply["covered"].values())
    assert other.get(f"{URL}?after={known - 1}").json()["rows"]
    assert other.get(f"{URL}?after={known}").json()["rows"] is None


def test_an_answer_that_is_there_has_no_rows_so_far(place: Place, client: TestClient) -> None:
    send(client, "people")
    send(client, "visits")
    place.work()
    assert client.get(URL).json()["covered"] == {}


@dataclass(frozen=True)
class Slow(GrowingQuery):
    """A query whose rows take two seconds of a clock, or fail."""

    clock: HandClock = field(default_factory=HandClock)
    fails: bool = False

    def rows(self, covered: Covered) -> RowsSoFar:
        self.clock.sleep(2.0)
        if self.fails:
            raise QueryError("too much")
        return super().rows(covered)


def slow(place: Place, query: str, clock: HandClock, *, fails: bool = False) -> Slow:
    found = place.service.gateway.growing("j", "alice", query)
    return Slow(found.ports, found.job_run, query, clock, fails)


def put_people(place: Place, client: TestClient, number: int) -> None:
    assert put_batch(client, "people", number, batches("people")[number]) == 201
    place.work()


def test_looks_take_a_small_part_of_the_time_however_often_one_asks(
    place: Place, client: TestClient
) -> None:
    clock = HandClock()
    growths, query = Growths(clock), slow(place, "adults", clock)
    put_people(place, client, 0)
    for number in (1, 2):
        for _ in range(5):
            found = growths.newest(query)
        assert found is not None
        assert found.found.batches == number, "one look for all who ask"
        put_people(place, client, number)
        clock.time += 2.0 * REST - 0.1
        assert not growths.is_due(query)
        clock.time += 0.2
    assert clock.slept == [2.0, 2.0]


def test_a_look_that_fails_is_not_repeated_at_once(place: Place, client: TestClient) -> None:
    clock = HandClock()
    growths, query = Growths(clock), slow(place, "adults", clock, fails=True)
    put_people(place, client, 0)
    for _ in range(5):
        assert growths.newest(query) is None
        clock.time += 10.0
    assert clock.slept == [2.0]
