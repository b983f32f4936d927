"""Jobs over a dataset: what they compute, what they find computed, and what if that goes away."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness.asking_place import DAY, AskingPlace
from tests.harness.hand_clock import WrongClock
from tests.harness.shelves import SALES, load_files, sales_app, sales_loader, write_shops
from tests.simulation.remembering import padded

from caudal.datasets.cluster_place import DatasetNotFoundError
from caudal.datasets.compaction import compact
from caudal.datasets.vacuum import vacuum
from caudal.errors import NotFoundError, UsageError
from caudal.formats.job import AskedDataset, Options, Request, Text
from caudal.formats.keys import Task
from caudal.formats.outcomes import PLANNED_ELSEWHERE
from caudal.formats.replies import AskReceipt
from caudal.jobs import asking, execute, shared_maps, versions
from caudal.jobs.reconciler import Reconciler
from caudal.model import Application
from caudal.sql.adhoc import with_adhoc_query
from caudal.sql.planner import current_time
from caudal.sql.volatile import WORDS
from caudal.worker.compute import LocalCompute

GROUPED = "SELECT day, sum(amount) AS total FROM sales GROUP BY day ORDER BY day"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[AskingPlace]:
    found = AskingPlace()
    found.load_sales(tmp_path, "first.csv", range(1, 20))
    found.load_sales(tmp_path, "second.csv", range(20, 30))
    yield found
    compute = found.ports.compute
    if isinstance(compute, LocalCompute):
        compute.close()


def other_options(**values: float) -> Options:
    """Options that make another job of the same question."""
    return Options(partitions=2, keep_seconds=values.get("keep_seconds", 7.0))


def app_asking(sql: str) -> Application:
    return with_adhoc_query(sales_app(), sql)


def total(place: AskingPlace, receipt: AskReceipt) -> int:
    return int(place.rows(receipt)["sales"][0].as_py())


def test_a_question_is_answered_from_the_files(place: AskingPlace) -> None:
    receipt = place.ask()
    assert place.work() == {"map": 2, "merge": 1, "finish": 2}
    assert place.rows(receipt).to_pylist() == [{"sales": 29, "total": pytest.approx(449.5)}]
    assert receipt.version == 2
    assert receipt.new


def test_the_same_question_again_runs_no_task(place: AskingPlace) -> None:
    first = place.ask()
    place.work()
    again = place.ask()
    assert (again.job, again.run, again.new) == (first.job, first.run, False)
    assert place.work() == {}
    assert total(place, again) == 29


def test_another_release_answers_anew_from_the_same_outputs(
    place: AskingPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stored answer may be one that the release has mended."""
    first = place.ask()
    place.work()
    monkeypatch.setattr(asking, "__version__", "99.0.0")
    again = place.ask()
    assert again.new
    assert again.job != first.job
    assert place.work() == {"merge": 1, "finish": 2}
    assert total(place, again) == 29


def test_another_job_finds_what_was_mapped(place: AskingPlace) -> None:
    place.ask()
    place.work()
    other = place.ask(options=other_options())
    made = place.work()
    assert made["map"] == 0
    assert made["finish"] == 2
    assert total(place, other) == 29


def test_after_an_append_only_new_files_are_mapped(place: AskingPlace, tmp_path: Path) -> None:
    place.ask()
    place.work()
    assert place.load_sales(tmp_path, "third.csv", range(30, 33)) == 3
    later = place.ask()
    assert place.work()["map"] == 1
    assert total(place, later) == 32
    old = place.ask(version=1)
    assert place.work()["map"] == 0
    assert total(place, old) == 19


def test_jobs_at_the_same_time_share_what_one_of_them_maps(place: AskingPlace) -> None:
    one, other = place.ask(), place.ask(options=other_options())
    made = place.work()
    assert made["map"] == 2
    assert total(place, one) == total(place, other) == 29


def test_rejected_rows_can_be_asked(place: AskingPlace) -> None:
    receipt = place.ask(app_asking("SELECT reason, count(*) AS n FROM rejects GROUP BY reason"))
    place.work()
    assert place.rows(receipt, "sql").to_pylist() == [{"reason": "id is not a number", "n": 2}]


def test_a_count_of_rows_and_a_table_without_files(place: AskingPlace, tmp_path: Path) -> None:
    count = place.ask(app_asking("SELECT count(*) AS n FROM sales"))
    empty = place.ask(app_asking("SELECT name FROM shops"))
    place.work()
    assert place.rows(count, "sql").to_pylist() == [{"n": 29}]
    assert place.rows(empty, "sql").to_pylist() == []
    write_shops(tmp_path)
    with sales_loader(place.dataset().below) as loader:
        load_files(loader, tmp_path, shops=[str(tmp_path / "shops.csv")])
    full = place.ask(app_asking("SELECT name FROM shops"))
    place.work()
    assert place.rows(full, "sql")["name"].to_pylist() == ["North", 'South, "old"']


def test_outputs_that_are_swept_before_the_merge_are_made_again(place: AskingPlace) -> None:
    receipt = place.ask()
    place.take("map")
    place.store.delete(place.shared()[0])
    place.work()
    assert place.outcome(receipt) is None
    place.reconcile()
    assert place.work()["map"] == 1
    assert total(place, receipt) == 29


def test_outputs_that_are_swept_after_the_merge_may_come_back_in_other_bytes(
    place: AskingPlace,
) -> None:
    receipt = place.ask(app_asking(GROUPED))
    place.take("merge")
    for key in place.shared():
        place.store.delete(key)
    place.work()
    assert place.outcome(receipt) is None
    place.with_compute(_Padding())
    for _ in range(4):
        place.reconcile()
        place.work()
    outcome = place.outcome(receipt)
    assert outcome is not None
    assert outcome.state == "done"
    assert place.rows(receipt, "sql").num_rows == 28


class _Padding(LocalCompute):
    """Computes the same outputs, laid out differently."""

    def run(self, *arguments: object, **more: object) -> bytes:
        made: bytes = super().run(*arguments, **more)  # type: ignore[arg-type]
        task = arguments[1]
        return padded(made, 3) if isinstance(task, Task) and task.kind == "map" else made


def test_an_output_with_an_error_belongs_to_its_job(place: AskingPlace) -> None:
    receipt = place.ask(app_asking("SELECT CAST(CAST(day AS VARCHAR) AS INTEGER) AS n FROM sales"))
    place.work()
    outcome = place.outcome(receipt)
    assert outcome is not None
    assert "Could not convert" in outcome.failed["sql"]
    assert place.shared() == []
    again = place.ask(app_asking("SELECT CAST(CAST(day AS VARCHAR) AS INTEGER) AS n FROM sales"))
    assert (again.job, again.new) == (receipt.job, True)


def test_a_failed_job_is_begun_anew(place: AskingPlace) -> None:
    first = place.ask()
    place.jobs.cancel(first.job, "ana")
    again = place.ask()
    assert (again.job, again.new) == (first.job, True)
    assert again.run != first.run
    place.work()
    assert total(place, again) == 29


def test_a_question_that_depends_on_the_time_is_asked_anew(place: AskingPlace) -> None:
    app = app_asking("SELECT current_date AS day, count(*) AS n FROM sales")
    assert place.ask(app, once="a").job != place.ask(app, once="b").job
    assert place.ask(once="a").job == place.ask(once="b").job


def test_every_name_of_the_current_time_counts() -> None:
    assert set(WORDS) >= set(current_time.NAMES)


@pytest.mark.parametrize("name", sorted(versions.engine_versions()))
def test_the_key_of_an_output_names_every_version(place: AskingPlace, name: str) -> None:
    place.ask()
    place.work()
    before = place.shared()
    place.with_versions({**versions.engine_versions(), name: "another"})
    place.ask()
    assert place.work()["map"] == 2
    assert len(place.shared()) == 2 * len(before)


def test_the_release_is_not_a_part_of_the_key() -> None:
    assert set(versions.engine_versions()) == {"hash", "mapped", "duckdb", "pyarrow"}


def test_a_question_of_release_0_1_0_is_computed_and_shared_as_it_did(place: AskingPlace) -> None:
    now = versions.engine_versions()
    place.with_versions({**now, "caudal": "0.1.0", "kernels": "of its sources"})
    receipt = place.ask()
    place.with_versions(now)  # no worker of the older release is left
    place.work()
    assert total(place, receipt) == 29
    assert len(place.shared()) == 2


@pytest.mark.parametrize("name", ["duckdb", "pyarrow", "added later"])
def test_a_worker_that_shares_nothing_computes_for_the_one_job(
    place: AskingPlace, name: str
) -> None:
    receipt = place.ask()
    place.with_versions({**versions.engine_versions(), name: "another"})
    made = place.work()
    assert (made["map"], total(place, receipt)) == (2, 29)
    assert place.shared() == []
    place.with_versions(versions.engine_versions())
    other = place.ask(options=other_options())
    assert (place.work()["map"], total(place, other)) == (2, 29)
    assert len(place.shared()) == 2


def test_shared_outputs_that_are_swept_are_made_again_by_whoever_fits(place: AskingPlace) -> None:
    receipt = place.ask(app_asking(GROUPED))
    place.take("merge")
    for key in place.shared():
        place.store.delete(key)
    place.with_versions({**versions.engine_versions(), "duckdb": "another"})
    for _ in range(4):
        place.reconcile()
        place.work()
    assert place.shared() == []
    assert place.rows(receipt, "sql").num_rows == 28


@pytest.mark.parametrize("name", ["rows", "hash", "mapped"])
def test_a_question_of_another_level_waits_and_is_then_planned_anew(
    place: AskingPlace, name: str
) -> None:
    receipt = place.ask()
    place.with_versions({**versions.engine_versions(), name: "another"})
    reconciler = Reconciler(place.ports)
    for _ in range(3):
        assert execute.take_turn(place.ports, place.consumer) is execute.TurnResult.HANDED_BACK
        reconciler.round()
        place.clock.time += 11.0
    assert place.outcome(receipt) is None
    place.clock.time += 61.0
    reconciler.round()
    outcome = place.outcome(receipt)
    assert outcome is not None
    assert outcome.state == "failed"
    assert outcome.reason.startswith(f"{PLANNED_ELSEWHERE}{name}")
    again = place.ask()
    place.work()
    assert total(place, again) == 29
    assert len(place.shared()) == 2


def test_a_question_that_older_workers_compute_is_not_given_up(place: AskingPlace) -> None:
    """One map is computed; the other waits in a lane that the reconciler does not see."""
    receipt = place.ask()
    job_run = place.ports.job_runs.open(receipt.job)
    assert job_run is not None
    place.with_versions({**versions.engine_versions(), "rows": "another"})
    reconciler = Reconciler(place.ports)

    def look(seconds: float) -> None:
        place.clock.time += seconds
        reconciler.round()

    for number in range(12):
        mark = f"{job_run.keys.running(Task('map', 'sales', 0))}{number:06}-old"
        place.store.create(mark, b"running", lasting=False)
        look(11.0)
    assert place.outcome(receipt) is None
    for _ in range(4):
        look(11.0)
    assert place.outcome(receipt) is None  # its worker was there less than a minute ago
    for _ in range(6):
        look(11.0)
    assert place.outcome(receipt) is not None


@pytest.mark.parametrize("ahead", [3600.0, -3600.0])
def test_a_gateway_whose_clock_is_wrong_gives_up_no_question_too_soon(
    place: AskingPlace, ahead: float
) -> None:
    receipt = place.ask()
    place.with_versions({**versions.engine_versions(), "rows": "another"})
    clock = WrongClock(place.clock.time, ahead=ahead)
    reconciler = Reconciler(replace(place.ports, clock=clock))
    for _ in range(6):
        reconciler.round()
        assert place.outcome(receipt) is None
        clock.time += 11.0
    clock.time += 61.0
    reconciler.round()
    assert place.outcome(receipt) is not None


def test_a_question_that_waits_for_a_worker_of_its_level_is_computed_by_it(
    place: AskingPlace,
) -> None:
    receipt = place.ask()
    place.with_versions({**versions.engine_versions(), "rows": "2"})
    place.clock.time += 300.0
    for _ in range(9):
        execute.take_turn(place.ports, place.consumer)
    place.with_versions(versions.engine_versions())
    place.work()
    assert total(place, receipt) == 29


def test_unused_outputs_are_swept(place: AskingPlace) -> None:
    place.ask()
    place.work()
    place.clock.time += 6 * DAY
    place.janitor.round()
    assert len(place.shared()) == 2
    place.ask(options=other_options())  # uses them again
    place.work()
    place.clock.time += 6 * DAY
    place.janitor.round()
    assert len(place.shared()) == 2
    place.clock.time += 3 * DAY
    place.janitor.round()
    assert place.shared() == []
    assert not [key for key in place.store.list("datasets/").entries if "/used/" in key.key]


def test_what_a_running_job_needs_is_not_swept(place: AskingPlace) -> None:
    receipt = place.ask(options=Options(partitions=2, silent_seconds=30 * DAY))
    place.take("map")
    place.clock.time += 20 * DAY
    place.janitor.round()
    assert len(place.shared()) == 1
    place.work()
    assert total(place, receipt) == 29


def test_readers_and_others(place: AskingPlace) -> None:
    with pytest.raises(DatasetNotFoundError, match="no dataset ana/shelf that you may read"):
        place.ask(who="ben", name="ana/shelf")
    place.dataset().share("ben")
    receipt = place.ask(who="ben", name="ana/shelf")
    place.work()
    assert place.rows(receipt, who="ben")["sales"].to_pylist() == [29]
    assert place.ask().job != receipt.job


def test_questions_that_cannot_be_answered(place: AskingPlace) -> None:
    with pytest.raises(DatasetNotFoundError, match="there is no dataset other"):
        place.ask(name="other")
    with pytest.raises(UsageError, match="there is no version 9: the newest is 2"):
        place.ask(version=9)
    with pytest.raises(UsageError, match="the SQL or the columns of table sales changed since"):
        place.ask(sales_app(SALES.replace("'id is not a number'", "'bad'")))


def test_a_vacuumed_version_cannot_be_asked(place: AskingPlace) -> None:
    below = place.dataset().below
    compact(below, 2e9)
    vacuum(below, 3e9, keep=0.0, grace=0.0)
    with pytest.raises(UsageError, match="version 1 of shelf was vacuumed"):
        place.ask(version=1)
    receipt = place.ask()
    assert place.work()["map"] == 1
    assert total(place, receipt) == 29


def test_a_file_that_is_lost_fails_the_job_with_a_reason(place: AskingPlace) -> None:
    below = place.dataset().below
    receipt = place.ask()
    path = place.dataset().contents().tables["sales"][0].path
    below.delete(f"tables/sales/{path}")
    place.work()
    outcome = place.outcome(receipt)
    assert outcome is not None
    assert outcome.state == "failed"
    assert "version 2 of shelf was vacuumed while it was asked" in outcome.reason


def test_a_client_cannot_name_objects_of_a_dataset(place: AskingPlace) -> None:
    asked = AskedDataset("shelf", place.dataset().root, 1, ())
    request = Request(Text.of(sales_app()), dataset=asked)
    with pytest.raises(UsageError, match="ask the dataset instead"):
        place.jobs.create("mine", "ben", request)


def test_a_stray_message_of_a_batch_that_is_not_there_is_dropped(place: AskingPlace) -> None:
    receipt = place.ask()
    job_run = place.ports.job_runs.open(receipt.job)
    assert job_run is not None
    place.broker.publish([job_run.message(Task("map", "sales", 70))])
    place.work()
    assert total(place, receipt) == 29
    with pytest.raises(NotFoundError):
        shared_maps.open_mapped(place.store, job_run, "sales", 70)
