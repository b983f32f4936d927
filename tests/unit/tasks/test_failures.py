"""A query fails alone, with `--store` and on a cluster: all others are answered (ADR 27)."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from tests.harness.one_owner import OneOwner
from tests.harness.waiting import until
from tests.unit.engine.test_failing import FAILING, SOUND, application
from tests.unit.tasks.test_end_to_end import Place, order_of

from caudal.broker.port import Delivery
from caudal.client.results import answers_of
from caudal.duck import steps
from caudal.duck.sandbox import Sandbox, SandboxLimits
from caudal.embedded.engine import run as run_embedded
from caudal.errors import (
    InterruptedQueryError,
    MemoryExceededError,
    QueryError,
)
from caudal.files.sources import Sources
from caudal.formats import mapped, outputs
from caudal.formats.job import Options
from caudal.formats.keys import Message, Task
from caudal.formats.outcomes import Outcome
from caudal.jobs import execute
from caudal.jobs.execute import TurnResult
from caudal.jobs.interfaces import SUSPECT_AFTER, CondemnedError, InputPart, NotNowError
from caudal.jobs.preview import Aborted, Rows
from caudal.jobs.runs import JobRun
from caudal.jobs.upload import Uploader
from caudal.local.run import local_run
from caudal.model import Application
from caudal.results.answers import Answers
from caudal.run_options import RunOptions
from caudal.sql.planner import Fold
from caudal.store import MemoryStore
from caudal.store.port import entries
from caudal.worker.compute import LocalCompute
from caudal.worker.turns import SharedTurns

QUICK = {name: sql for name, sql in FAILING.items() if name != "memory"}
SMALL = Options(batch_bytes=1000, partitions=3, group=2)
CAST = r"Could not convert string 'word\d+' to INT32"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("data")
    lines = "".join(f"{row},{row % 3},word{row}\n" for row in range(300))
    for table in ("t", "u"):
        (made / f"{table}.csv").write_text("id,k,text\n" + lines, encoding="utf-8")
    return made


@pytest.fixture
def place() -> Place:
    return Place()


def answered(place: Place, app: Application, folder: Path) -> tuple[Outcome, Answers]:
    outcome, results = Uploader(OneOwner(place.gateway), place.clock).run(
        order_of(app, folder, SMALL)
    )
    return outcome, answers_of(results, [query.name for query in app.queries])


def check(answers: Answers, app: Application, folder: Path) -> None:
    """The answers and the failures are those of the embedded engine."""
    expected = run_embedded(app, Sources(folder))
    assert list(answers.results) == list(expected.results)
    for name, result in expected.results.items():
        assert answers[name].table.equals(result.table), name
    assert list(answers.failures) == list(expected.failures)
    for name in expected.failures:
        with pytest.raises(QueryError, match=f"^{name}.sql: {CAST}"):
            answers[name].rows()


@pytest.mark.parametrize("failing", QUICK)
def test_the_others_are_answered_on_a_cluster(failing: str, folder: Path, place: Place) -> None:
    app = application({failing: FAILING[failing], **SOUND})
    outcome, answers = answered(place, app, folder)
    check(answers, app, folder)
    told = {failing: str(answers.failures[failing])}
    assert (outcome.state, outcome.reason, outcome.failed) == ("done", "", told)
    status = place.gateway.status("j", "me")
    assert status.failed == told
    assert set(status.results) == {*SOUND, failing, "rejects"}
    assert place.gateway.jobs("me").jobs[0].failed == (failing,)


@pytest.mark.parametrize("failing", FAILING)
def test_the_others_are_answered_with_a_store(failing: str, folder: Path) -> None:
    store, app = MemoryStore(), application({failing: FAILING[failing], **SOUND})
    options = RunOptions(threads=2, partitions=3, batch_bytes=1000, memory_limit=900_000_000)
    with local_run(store, "the store", resume=False) as run:
        answers = run.run(app, Sources(folder), options=options)
    if failing == "memory":
        assert list(answers.results) == list(SOUND)
        assert "memory.sql: the query needs more than" in str(answers.failures["memory"])
    else:
        check(answers, app, folder)
    assert list(entries(store, "")) == []


def test_several_may_fail_and_all(folder: Path, place: Place) -> None:
    app = application({**QUICK, **SOUND})
    outcome, answers = answered(place, app, folder)
    assert set(outcome.failed) == set(QUICK)
    check(answers, app, folder)
    with (
        pytest.raises(QueryError, match=r"scan\.sql"),
        local_run(store := MemoryStore(), "the store", resume=False) as run,
    ):
        run.run(application({"scan": FAILING["scan"]}), Sources(folder))
    assert list(entries(store, "")) == []


def test_who_shares_what_failed_fails_too(
    folder: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what cannot raise is shared: so it is memory or time that fails several at once."""
    real = steps.fold

    def fold(stage: Fold, *rest: object) -> steps.Slices:
        if stage.queries == ("groups", "again"):
            raise QueryError("the query took more than 9 seconds")
        return real(stage, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(steps, "fold", fold)
    outcome, answers = answered(place, application({**SOUND, "again": SOUND["groups"]}), folder)
    assert list(answers.results) == ["total", "joined"]
    why = "groups.sql, again.sql: the query took more than 9 seconds"
    assert outcome.failed == {"groups": why, "again": why}


@pytest.mark.parametrize("failing", ["scan", "fold"])
def test_which_error_counts_is_not_decided_by_arrival(failing: str, folder: Path) -> None:
    """Every batch and every partition fails with another value."""
    app, told = application({failing: FAILING[failing]}), set()
    for seed in range(3):
        place = Place()
        client = Uploader(OneOwner(place.gateway), place.clock)
        client.send(order_of(app, folder, SMALL))
        shuffled(place, Random(seed))
        told.add(place.gateway.status("j", "me").failed[failing])
    assert len(told) == 1
    if failing == "scan":
        assert "'word0'" in told.pop()


def shuffled(place: Place, chance: Random) -> None:
    """Do all tasks, those that wait in any order."""
    while True:
        waiting = []
        while (delivery := place.consumer.take()) is not None:
            waiting.append(delivery)
        if not waiting:
            return
        chance.shuffle(waiting)
        for delivery in waiting:
            execute.execute_task(place.ports, place.consumer, delivery)


def test_a_stage_that_failed_gives_no_hint(folder: Path, place: Place) -> None:
    """`u` comes first, and would tell which rows of `t` are needed."""
    inner = "(SELECT k, CAST(text AS INTEGER) AS i FROM u)"
    app = application(
        {"hinted": f"SELECT t.id, i FROM {inner} AS a JOIN t ON t.k = a.k ORDER BY ALL", **SOUND}
    )
    _, answers = answered(place, app, folder)
    assert set(answers.results) == set(SOUND)
    assert "hinted.sql: Could not convert" in str(answers.failures["hinted"])


def test_a_preview_ends_with_the_reason(folder: Path, place: Place) -> None:
    late = "SELECT id, CAST(replace(text, 'word2', '') AS INTEGER) AS i FROM t WHERE id > 150"
    app = application({"late": late, **SOUND})
    client = Uploader(OneOwner(place.gateway), place.clock)
    client.send(order_of(app, folder, SMALL))
    place.work()
    preview = place.gateway.preview("j", "me", "late")
    assert isinstance(preview.step(0), Rows)
    aborted = next(step for n in range(40) if not isinstance(step := preview.step(n), Rows))
    assert isinstance(aborted, Aborted)
    assert "late.sql: Could not convert" in aborted.reason
    end = len(order_of(app, folder, SMALL).batches["t"])  # type: ignore[arg-type]
    assert isinstance(preview.step(end), Aborted)


@pytest.fixture
def task(folder: Path, place: Place) -> "Iterator[Computing]":
    app = application({"scan": "SELECT id, text FROM t", "total": SOUND["total"]})
    Uploader(OneOwner(place.gateway), place.clock).send(order_of(app, folder, SMALL))
    job_run = place.ports.job_runs.open("j")
    assert job_run is not None
    compute = LocalCompute()
    data = place.store.read(job_run.keys.batch("t", 0))
    yield Computing(compute, job_run, data)
    compute.close()


class Computing:
    """One map task, computed as often as wanted."""

    def __init__(self, compute: LocalCompute, job_run: JobRun, data: bytes) -> None:
        self.compute, self.job_run, self.data = compute, job_run, data

    def failed(self) -> dict[str, str]:
        """The scans that failed, by the query that they are of."""
        made = self.compute.run(
            self.job_run.job, Task("map", "t", 0), {"t": [InputPart(self.data)]}, 1
        )
        queries = {one.name: one.queries[0] for one in self.job_run.split.plan.scans}
        index = mapped.open_bytes(made).index
        return {queries[name]: why for name, why in index.failed.items()}


def failing_scan(error: Exception, times: int) -> Callable[..., steps.Slices]:
    """Scans that fail so often, and then no more."""
    left = iter(range(times))
    real = steps.scan

    def scan(*arguments: object) -> steps.Slices:
        if next(left, None) is not None:
            raise error
        return real(*arguments)  # type: ignore[arg-type]

    return scan


def test_want_of_memory_counts_only_where_nobody_else_ran(
    task: Computing, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = MemoryExceededError("the query needs more than there is")
    monkeypatch.setattr(steps, "scan", failing_scan(error, 1))
    assert task.failed() == {}
    monkeypatch.setattr(steps, "scan", failing_scan(error, 2))
    assert task.failed() == {"scan": "scan.sql: the query needs more than there is"}


def test_an_interruption_is_no_failure(task: Computing, monkeypatch: pytest.MonkeyPatch) -> None:
    error = InterruptedQueryError("INTERRUPT Error: Interrupted!")
    monkeypatch.setattr(steps, "scan", failing_scan(error, 1))
    with pytest.raises(NotNowError, match="interrupted"):
        task.failed()
    assert task.failed() == {}


def test_an_interruption_is_told_apart() -> None:
    endless = "SELECT count(*) AS n FROM range(100000000) a(x), range(100000000) b(y) WHERE x*y = 7"
    with Sandbox(SandboxLimits()) as sandbox:
        over = threading.Event()

        def interrupt() -> None:
            while not over.wait(0.01):
                sandbox.interrupt()

        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            with pytest.raises(InterruptedQueryError):
                sandbox.select(endless, {})
        finally:
            over.set()
            thread.join()


def test_one_alone_waits_for_all_and_goes_before_newcomers() -> None:
    turns, order = SharedTurns(), list[str]()

    def alone() -> None:
        with turns.alone():
            order.append("alone")

    def newcomer() -> None:
        with turns.beside():
            order.append("newcomer")

    with turns.beside():
        threads = [threading.Thread(target=alone)]
        threads[0].start()
        until(lambda: turns.waits)
        threads.append(threading.Thread(target=newcomer))
        threads[1].start()
        order.append("first")
    for thread in threads:
        thread.join()
    assert order == ["first", "alone", "newcomer"]


@pytest.mark.parametrize(
    ("task", "deliveries", "fails"),
    [
        (Task("fold", "", 0), 1, "groups"),
        (Task("fold", "", 0), SUSPECT_AFTER + 1, "the job"),
        (Task("finish", "groups"), SUSPECT_AFTER + 1, "groups"),
        (Task("finish", "rejects"), 1, "the job"),
        (Task("map", "t", 0), 1, "the job"),
    ],
)
def test_who_fails_with_a_task_that_is_condemned(
    task: Task, deliveries: int, fails: str, folder: Path, place: Place,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    app = application({"groups": SOUND["groups"], "total": SOUND["total"]})
    run = Uploader(OneOwner(place.gateway), place.clock).send(order_of(app, folder, SMALL))
    job_run = place.ports.job_runs.open("j")
    assert job_run is not None
    if task.kind == "fold":
        (fold,) = [one for one in job_run.split.plan.folds if one.queries == ("groups",)]
        task = Task("fold", fold.name, 0)
    real = LocalCompute.run

    def condemned(self: LocalCompute, job: object, one: Task, *rest: object) -> bytes:
        if one == task:
            raise CondemnedError("it needs more than 9 MiB of memory")
        return real(self, job, one, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(LocalCompute, "run", condemned)
    while (delivery := place.consumer.take()) is not None:
        count = deliveries if delivery.message.task == task else 1
        made = Delivery(delivery.tag, Message("j", run, delivery.message.task, 2), count)
        assert execute.execute_task(place.ports, place.consumer, made) is TurnResult.ACKNOWLEDGED
    outcome = place.gateway.status("j", "me").outcome
    assert outcome is not None
    if fails == "the job":
        assert (outcome.state, outcome.failed) == ("failed", {})
    else:
        why = "groups.sql: it needs more than 9 MiB of memory"
        assert (outcome.state, outcome.failed) == ("done", {"groups": why})
        result = place.gateway.result("j", "me", "total", run)
        assert outputs.decode_result(result, "total")[1].num_rows == 1
