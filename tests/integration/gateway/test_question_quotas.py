"""Quotas of questions to datasets: asking again is free only if an answer is there."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from starlette.testclient import TestClient
from tests.harness.gateway_place import Answer, Place, code_of
from tests.harness.shelves import load_files, sales_app, sales_loader, write_sales

from caudal.datasets.cluster_place import locate
from caudal.formats.job import Options, Request, Text
from caudal.formats.quotas import Quota, Quotas
from caudal.formats.replies import Question


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A shelf of alice's, who may have one running job."""
    with Place(quotas=Quotas(jobs=1)) as made:
        write_sales(tmp_path, "sales.csv", (1, 2, 3))
        with sales_loader(locate(made.store, "alice", "shelf").below) as loader:
            load_files(loader, tmp_path, sales=[str(tmp_path / "sales.csv")])
        yield made


def ask(client: TestClient, partitions: int) -> Answer:
    """Another number is another question."""
    request = Request(Text.of(sales_app()), options=Options(partitions=partitions))
    return client.post("/datasets/shelf/jobs", content=msgspec.json.encode(Question(request)))


def running(place: Place) -> int:
    return place.service.census.used("alice", Quota.JOBS)


def test_a_cancelled_question_that_is_asked_again_takes_a_place(place: Place) -> None:
    client = place.client()
    first = ask(client, 2)
    assert first.status_code == 201
    assert client.delete(f"/jobs/{first.json()['job']}").status_code == 200
    place.service.census.round()
    second = ask(client, 3)
    assert second.status_code == 201
    answer = ask(client, 2)
    assert code_of(answer) == (429, "over_quota")
    assert answer.json()["error"]["quota"] == "jobs"
    told = client.get(f"/jobs/{first.json()['job']}").json()
    assert (told["run"], told["outcome"]["state"]) == (first.json()["run"], "cancelled")
    assert client.delete(f"/jobs/{second.json()['job']}").status_code == 200
    place.service.census.round()
    assert running(place) == 0
    again = ask(client, 2)
    assert (again.status_code, again.json()["job"]) == (201, first.json()["job"])
    assert running(place) == 1, "before the next count"
    assert code_of(ask(client, 3)) == (429, "over_quota")


def test_an_equal_question_takes_nothing(place: Place) -> None:
    client = place.client()
    first = ask(client, 2)
    assert ask(client, 2).status_code == 200, "it runs"
    place.work()
    place.service.census.round()
    assert ask(client, 3).status_code == 201
    again = ask(client, 2)
    assert (again.status_code, again.json()["run"]) == (200, first.json()["run"]), "it is answered"
    assert running(place) == 1


def test_a_question_whose_answers_are_gone_takes_a_place(place: Place) -> None:
    client = place.client()
    first = ask(client, 2).json()
    place.work()
    for entry in place.store.list(f"jobs/{first['job']}/").entries:
        if "/total" in entry.key:
            place.store.delete(entry.key)
    place.service.census.round()
    assert ask(client, 3).status_code == 201
    assert code_of(ask(client, 2)) == (429, "over_quota")


def test_what_ends_while_it_is_asked_again_counts(place: Place) -> None:
    """It was running when the quota was looked at, so nothing was taken for it."""
    place.quotas = Quotas(jobs=3)
    client = place.client()
    job = ask(client, 2).json()["job"]
    assert running(place) == 1
    questions, real = place.service.questions, type(place.service.questions).ask

    def ask_late(*given: object) -> object:
        assert client.delete(f"/jobs/{job}").status_code == 200
        return real(questions, *given)  # type: ignore[arg-type]

    object.__setattr__(questions, "ask", ask_late)
    assert ask(client, 2).status_code == 201
    assert running(place) == 2, "until the next count"
