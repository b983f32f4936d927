"""Ids of loads and of questions belong to one owner, whoever comes first."""

import re
from pathlib import Path

import msgspec
import pytest
from tests.harness.asking_place import AskingPlace
from tests.harness.shelves import sales_app

from caudal.errors import UsageError
from caudal.formats.job import Options, Request, Text
from caudal.formats.keys import JOB_ID
from caudal.formats.loads import LoadRequest, LoadSource
from caudal.formats.replies import Question
from caudal.jobs.derived_ids import check_whose, derived_id
from caudal.jobs.interfaces import GoneError
from caudal.jobs.load_requests import offer_load

ASKED = Request(Text.of(sales_app()), options=Options(partitions=2))


@pytest.fixture
def place(tmp_path: Path) -> AskingPlace:
    made = AskingPlace()
    made.load_sales(tmp_path, "first.csv", range(10))
    return made


def load_request() -> Request:
    source = LoadSource("sales", "public.csv", 10, "0" * 32, "public.csv")
    text = msgspec.structs.replace(ASKED.application, queries=())
    return Request(text, load=LoadRequest("new", (source,)))


def refused(place: AskingPlace, job: str, who: str) -> str:
    """Return why a job of its own is refused to an owner under this id."""
    with pytest.raises(UsageError) as why:
        place.jobs.create(job, who, ASKED)
    return str(why.value)


def test_an_id_is_derived_from_the_owner_and_the_content() -> None:
    one = derived_id("load", "ana", b"x")
    assert JOB_ID.match(one)
    assert re.match(r"load-[0-9a-f]{32}-[0-9a-f]{16}\Z", one)
    others = [("load", "ben", b"x"), ("load", "ana", b"y"), ("ask", "ana", b"x")]
    assert len({one, *(derived_id(*other) for other in others)}) == 4  # type: ignore[arg-type]
    assert derived_id("load", "ana", b"x") == one


@pytest.mark.parametrize("kind", ["load", "ask"])
def test_only_its_owner_may_have_it(kind: str) -> None:
    job = derived_id(kind, "ana", b"x")  # type: ignore[arg-type]
    check_whose(job, "ana")
    with pytest.raises(UsageError, match="belongs to another owner"):
        check_whose(job, "ben")


@pytest.mark.parametrize("job", ["j", "load-1", "ask-me", "0" * 32, f"load-{'0' * 32}"])
def test_other_ids_are_free(job: str) -> None:
    check_whose(job, "ana")


def test_who_comes_first_cannot_take_the_id_of_a_load(place: AskingPlace) -> None:
    job = offer_load(place.store, "ana", load_request()).job
    before = refused(place, job, "ben")
    assert place.jobs.create(job, "ana", load_request()).new
    assert refused(place, job, "ben") == before
    with pytest.raises(GoneError, match="there is no job"):
        place.jobs.status(job, "ben")


def test_who_comes_first_cannot_take_the_id_of_a_question(place: AskingPlace) -> None:
    placed = place.questions.place("ana", "shelf", Question(ASKED, None, ""))
    before = refused(place, placed.job_id, "ben")
    receipt = place.ask()
    assert (receipt.job, receipt.new) == (placed.job_id, True)
    assert refused(place, receipt.job, "ben") == before
    place.work()
    assert place.rows(receipt).num_rows == 1


def test_a_reader_and_the_owner_ask_in_jobs_of_their_own(place: AskingPlace) -> None:
    place.dataset().share("ben")
    mine, theirs = place.ask(), place.ask(who="ben", name="ana/shelf")
    assert mine.new
    assert theirs.new
    assert mine.job != theirs.job


def earlier_id(place: AskingPlace, who: str) -> str:
    """Return the id that the previous version gives to the load."""
    return re.sub(r"-[0-9a-f]{16}\Z", "", offer_load(place.store, who, load_request()).job)


def test_a_load_that_an_earlier_version_began_goes_on(place: AskingPlace) -> None:
    job = earlier_id(place, "ana")
    place.jobs.create(job, "ana", load_request())
    assert offer_load(place.store, "ana", load_request()).job == job


def test_a_load_of_an_earlier_version_that_ended_is_begun_under_the_new_id(
    place: AskingPlace,
) -> None:
    job = earlier_id(place, "ana")
    place.jobs.create(job, "ana", load_request())
    place.jobs.cancel(job, "ana")
    assert offer_load(place.store, "ana", load_request()).job.startswith(f"{job}-")


def test_an_earlier_id_that_another_owner_took_is_left_to_it(place: AskingPlace) -> None:
    job = earlier_id(place, "ana")
    place.jobs.create(job, "ben", ASKED)
    offered = offer_load(place.store, "ana", load_request()).job
    assert offered.startswith(f"{job}-")
    assert place.jobs.create(offered, "ana", load_request()).new


def test_an_earlier_id_with_an_unreadable_job_is_left_alone(place: AskingPlace) -> None:
    job = earlier_id(place, "ana")
    place.store.create(f"jobs/{job}/job.json", b"{}")
    assert offer_load(place.store, "ana", load_request()).job.startswith(f"{job}-")
