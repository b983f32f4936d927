"""Looks at a job that wait at the gateway until there are news (gateway/news.py)."""

import pytest
from tests.harness.gateway_place import BERTA, Place, code_of, create

from caudal.formats.quotas import Quotas, Share
from caudal.gateway.limits import GatewayLimits
from caudal.jobs.runs import JobRun
from caudal.jobs.service import JobService

WAITING = "/jobs/j?wait=10&results=0"


class Looks:
    """Counts looks for news; at one of them, the job ends first."""

    def __init__(self, ends_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        has_news = JobService.has_news

        def look(service: JobService, job_run: JobRun, results: int) -> bool:
            self.count += 1
            if self.count == ends_at:
                service.cancel("j", "alice")
            return has_news(service, job_run, results)

        monkeypatch.setattr(JobService, "has_news", look)


def test_the_answer_waits_for_the_outcome(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    create(place.client())
    looks = Looks(3, monkeypatch)
    answer = place.client().get(WAITING)
    assert answer.json()["outcome"]["state"] == "cancelled"
    assert looks.count == 3


def test_another_number_of_results_is_news(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    create(place.client())
    looks = Looks(0, monkeypatch)
    answer = place.client().get("/jobs/j?wait=10&results=1")
    assert answer.json()["outcome"] is None
    assert looks.count == 1


def test_without_news_the_status_is_told_after_the_time(place: Place) -> None:
    create(place.client())
    assert place.client().get("/jobs/j?wait=0.001&results=0").json()["outcome"] is None


FEW = {
    "of the gateway": (GatewayLimits(requests=1), Quotas()),
    "of the owner": (GatewayLimits(), Quotas(owners={"alice": Share(requests=1)})),
}


@pytest.mark.parametrize("few", FEW)
def test_who_finds_no_place_is_answered_at_once(few: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the places for requests are for waits: of the gateway's, and of the owner's."""
    limits, quotas = FEW[few]
    with Place(limits, quotas=quotas) as place:
        create(place.client())
        looks = Looks(1, monkeypatch)
        assert place.client().get(WAITING).json()["outcome"] is None
        assert looks.count == 0


def test_a_gateway_that_stops_answers_at_once(place: Place) -> None:
    create(place.client())
    place.stopping = True
    assert place.client().get(WAITING).json()["outcome"] is None


def test_nobody_waits_for_the_job_of_another(place: Place) -> None:
    create(place.client())
    assert code_of(place.client(BERTA).get(WAITING)) == (404, "no_job")
    assert code_of(place.client().get("/jobs/none?wait=10&results=0")) == (404, "no_job")


@pytest.mark.parametrize("asked", ["wait=-1", "wait=nan", "wait=inf", "wait=x", "wait=1&results=x"])
def test_what_is_no_number_is_refused(place: Place, asked: str) -> None:
    create(place.client())
    assert code_of(place.client().get(f"/jobs/j?{asked}")) == (400, "bad_request")
