"""The page and what it draws: files, plans, tasks, rows by page, the cluster."""

import gzip
from functools import partial

import pyarrow as pa
import pytest
from tests.harness.gateway_place import (
    ADULT_ROWS,
    ALICE,
    BERTA,
    CARLA,
    Place,
    code_of,
    create,
    send,
)
from tests.harness.hand_clock import WrongClock
from tests.harness.told_cluster import ToldCluster

from caudal.broker.port import Delivery
from caudal.formats import frame, outputs, streams
from caudal.formats.outputs import Whose
from caudal.gateway.handlers.page import page_files
from caudal.gateway.samples import Sampling
from caudal.jobs.events import TaskReport
from caudal.jobs.janitor import Janitor
from caudal.jobs.shown_facts import KEPT_SECONDS, samples_since
from caudal.jobs.stored_results import StoredResult, Window
from caudal.worker.task_facts import MOST_WAITING, TaskFactsLog


@pytest.fixture
def answered(place: Place) -> Place:
    """A job that is done, by a worker that writes facts."""
    facts = TaskFactsLog(place.store, "worker-1", "s1")
    object.__setattr__(place.ports, "events", facts)
    client = place.client()
    create(client)
    send(client, "people")
    send(client, "visits")
    place.work()
    facts.flush()
    return place


def test_the_page_needs_no_token_and_forbids_other_hosts(place: Place) -> None:
    answer = place.client(token=None).get("/")
    assert answer.status_code == 200
    assert answer.headers["content-security-policy"].startswith("default-src 'self';")
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert "set-cookie" not in answer.headers
    assert "<script>" not in answer.text  # nothing inline
    assert "://" not in answer.text  # nothing of other hosts


def test_every_file_is_served_once_and_then_only_confirmed(place: Place) -> None:
    client = place.client(token=None)
    for name, one in page_files().items():
        answer = client.get(f"/page/{name}")
        assert answer.content == one.data
        assert client.get(f"/page/{name}", headers={"if-none-match": one.tag}).status_code == 304


@pytest.mark.parametrize("name", ["no.js", "..%2fpage.py", "%2e%2e", "handlers"])
def test_only_files_of_the_page_are_served(place: Place, name: str) -> None:
    assert place.client(token=None).get(f"/page/{name}").status_code == 404


def test_the_first_page_is_small() -> None:
    first = [page_files()[name].data for name in ("index.html", "app.js", "style.css", "icon.svg")]
    assert sum(len(gzip.compress(one)) for one in first) < 250_000


def test_a_result_by_page(answered: Place) -> None:
    client = answered.client()
    found = client.get(
        "/jobs/j/results/adults?offset=1&limit=3", headers={"accept": "application/json"}
    ).json()
    assert [(one["name"], one["age"]) for one in found] == ADULT_ROWS[1:4]
    beyond = client.get("/jobs/j/results/adults?offset=9", headers={"accept": "text/csv"})
    assert beyond.text.splitlines() == ["name,age"]


@pytest.mark.parametrize("query", ["offset=-1", "limit=x", "offset=1234567890123"])
def test_a_page_must_be_numbers(answered: Place, query: str) -> None:
    answer = answered.client().get(
        f"/jobs/j/results/adults?{query}", headers={"accept": "application/json"}
    )
    assert code_of(answer) == (400, "bad_request")


def test_a_stored_form_has_no_pages(answered: Place) -> None:
    assert code_of(answered.client().get("/jobs/j/results/adults?limit=1"))[0] == 406


def test_only_the_wanted_record_batches_are_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [pa.record_batch({"n": list(range(10 * k, 10 * k + 10))}) for k in range(20)]
    data = outputs.encode_result(Whose("j", "r", "q"), "", pa.Table.from_batches(batches))
    read = frame.of_bytes(data)
    result = StoredResult("q", outputs.result_head(read, Whose("j", "r", "q"), "q"), read)
    unpacked: list[int] = []
    real = streams.read_rows

    def counting(*given: object, **named: object) -> pa.Table:
        unpacked.append(1)
        return real(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(streams, "read_rows", counting)
    window = Window(95, 10)
    rows = [n for part in result.parts(window=window) for n in part["n"].to_pylist()]
    assert rows == list(range(95, 105))
    assert len(unpacked) == 3  # the first one, for the schema, and the two that hold the rows


@pytest.mark.parametrize("offset", [0, 1, 9, 10, 11, 199, 200, 999])
@pytest.mark.parametrize("limit", [0, 1, 10, 25, 999])
def test_a_window_is_a_slice(offset: int, limit: int) -> None:
    window, rows = Window(offset, limit), list(range(200))
    found: list[int] = []
    for first in range(0, 200, 10):
        begin, count = window.within(first, 10)
        found += rows[first:][begin : begin + count]
        assert window.meets(first, 10) == (count > 0)
    assert found == rows[offset : offset + limit]


def test_what_a_result_holds(answered: Place) -> None:
    about = answered.client().get("/jobs/j/results/adults/about").json()
    assert about["rows"] == len(ADULT_ROWS)
    assert about["columns"] == [
        {"name": "name", "type": "string"},
        {"name": "age", "type": "int32"},
    ]


def test_the_plan_is_the_one_that_explain_draws(answered: Place) -> None:
    plans = answered.client().get("/jobs/j/plan").json()["queries"]
    assert set(plans) == {"adults", "places"}
    names = {node["name"] for node in plans["places"]["nodes"]}
    assert {"table people", "table visits", "finish", "answer"} <= names
    for plan in plans.values():
        known = {node["name"] for node in plan["nodes"]}
        assert {end for edge in plan["edges"] for end in (edge["source"], edge["target"])} <= known
        steps = [node for node in plan["nodes"] if node["shape"] == "step"]
        assert all(node["sql"] and node["stage"] for node in steps)


def test_tasks_say_who_did_what_and_how_many_rows_it_gave(answered: Place) -> None:
    page = answered.client().get("/jobs/j/tasks").json()
    finish = next(one for one in page["tasks"] if one["name"] == "adults")
    assert finish["worker"] == "worker-1"
    assert finish["stages"]["adults"][0] == len(ADULT_ROWS)
    assert finish["began"] <= finish["ended"]
    kinds = {one["kind"] for one in page["tasks"]}
    assert kinds == {"map", "merge", "fold", "finish"}
    again = answered.client().get(f"/jobs/j/tasks?after={page['last']}").json()
    assert again["tasks"] == []


def test_facts_stay_when_the_data_of_an_ended_job_is_deleted(answered: Place) -> None:
    before = answered.client().get("/jobs/j/tasks").json()["tasks"]
    Janitor(answered.ports).round()
    assert answered.client().get("/jobs/j/tasks").json()["tasks"] == before
    assert not [one for one in answered.store.list("jobs/j/").entries if "/batches/" in one.key]


def test_facts_that_wait_are_bounded(place: Place) -> None:
    facts = TaskFactsLog(place.store, "w", "s")
    create(place.client())
    send(place.client(), "people")
    delivery = place.consumer.take()
    assert isinstance(delivery, Delivery)
    report = TaskReport(delivery)
    report.note(report.end.FAILED, "x")
    for _ in range(2 * MOST_WAITING):
        facts.ended(report)
    facts.flush()
    assert len(place.client().get("/jobs/j/tasks").json()["tasks"]) == MOST_WAITING


@pytest.mark.parametrize("path", ["plan", "tasks", "results/adults/about"])
def test_others_see_nothing_of_it(answered: Place, path: str) -> None:
    assert code_of(answered.client(BERTA).get(f"/jobs/j/{path}")) == (404, "no_job")
    assert answered.client(CARLA).get(f"/jobs/j/{path}").status_code == 200


@pytest.mark.parametrize("path", ["", "/plan", "/tasks"])
def test_watching_is_no_sign_of_life_of_the_client(place: Place, path: str) -> None:
    create(place.client())
    keys = place.store.list("jobs/j/").entries

    def marks() -> list[str]:
        return [one.key for one in place.store.list("jobs/j/").entries if "/seen/" in one.key]

    for key in marks():
        place.store.delete(key)
    del keys
    assert place.client().get(f"/jobs/j{path}?quiet=true").status_code == 200
    assert marks() == []


def test_only_an_admin_strikes_and_only_with_medics(place: Place) -> None:
    body = {"process": "worker-1", "incarnation": 1, "fault": "kill"}
    assert code_of(place.client(ALICE).post("/cluster/strikes", json=body))[0] == 403
    assert code_of(place.client(CARLA).post("/cluster/strikes", json=body)) == (409, "conflict")
    wrong = {**body, "fault": "delete"}
    assert code_of(place.client(CARLA).post("/cluster/strikes", json=wrong))[0] == 400


def test_the_cluster_of_a_gateway_without_medics(place: Place) -> None:
    shown = place.client().get("/cluster").json()
    assert shown["store"]["ok"]
    assert shown["broker"]["ok"]
    assert shown["lanes"]["fold"] == 0
    assert (shown["admin"], shown["processes"]) == (False, [])


@pytest.fixture
def told(place: Place) -> ToldCluster:
    return ToldCluster(place)


def test_gateways_write_one_sample_at_a_time(place: Place, told: ToldCluster) -> None:
    samplings = [Sampling(place.store, told.clock, told) for _ in range(3)]
    for one in samplings:
        one.round()
    found = partial(samples_since, place.store, 0.0)
    assert len(list(found())) == 1
    told.clock.pass_by(6.0)
    for one in samplings:
        one.round()
    assert len(list(found())) == 1  # nothing happened
    told.progress += 1
    for one in samplings:
        one.round()
    assert [sample.leader for sample in found()] == ["medic-1", "medic-1"]


def test_a_gateway_whose_clock_is_ahead_deletes_no_samples(
    place: Place, told: ToldCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    Sampling(place.store, told.clock, told).round()
    monkeypatch.setattr(place.store, "time", told.clock.now)
    Sampling(place.store, WrongClock(told.clock.at, ahead=25 * 3_600.0), told).round()
    assert len(list(samples_since(place.store, 0.0))) == 2


def test_old_samples_are_deleted(place: Place, told: ToldCluster) -> None:
    sampling = Sampling(place.store, told.clock, told)
    sampling.round()
    told.clock.pass_by(KEPT_SECONDS + 400.0)
    sampling.round()
    assert len(list(samples_since(place.store, 0.0))) == 1


@pytest.mark.parametrize(
    "seconds",
    ["0", "-1", "3601", "x", "", "\u0661", "000000001" + "9" * 400, "9" * 5_000, "000000001"],
)
def test_how_far_to_look_back_is_checked_as_it_is_used(place: Place, seconds: str) -> None:
    answer = place.client().get("/cluster/history", params={"seconds": seconds})
    assert code_of(answer) == (400, "bad_request")
    for allowed in ("1", "3600"):
        found = place.client().get("/cluster/history", params={"seconds": allowed})
        assert found.status_code == 200
