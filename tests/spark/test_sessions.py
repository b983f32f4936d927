"""A session that the user has already: it is used, and left as it was."""

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

import caudal
from caudal.errors import SparkFailedError, UsageError
from caudal.run_options import Progress, Silent
from caudal.spark.session import SparkSide
from tests.harness.waiting import GUARD_SECONDS

pytest.importorskip("pyspark", reason="the extra caudal[spark] is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

QUESTION = "SELECT a, count(*) AS n FROM 'numbers.csv' GROUP BY a ORDER BY a"
EXPECTED = [{"a": 1, "n": 2}, {"a": 2, "n": 1}]
ADAPTIVE = "spark.sql.adaptive.enabled"
LARGE = "spark.sql.execution.arrow.useLargeVarTypes"


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    (tmp_path / "numbers.csv").write_text("a\n1\n2\n1\n")
    return tmp_path


def asked(
    numbers: Path, spark: Any = None, progress: Progress | Literal[False] = False
) -> list[dict[str, Any]]:
    return caudal.sql(QUESTION, data=numbers, engine="spark", spark=spark, progress=progress).rows()


@pytest.mark.parametrize("master", [None, "local[2]"])
def test_the_active_session_is_used_and_stays_open(
    master: str | None, session: Any, numbers: Path
) -> None:
    before = session.conf.get(ADAPTIVE, None), signal.getsignal(signal.SIGINT)
    assert asked(numbers, caudal.SparkOptions(master=master)) == EXPECTED
    assert session.range(3).count() == 3
    assert (session.conf.get(ADAPTIVE, None), signal.getsignal(signal.SIGINT)) == before


def test_another_master_is_refused_while_a_session_is_active(session: Any, numbers: Path) -> None:
    told = r"master local\[2,4\] is active in this process, not spark://a:7077"
    with pytest.raises(UsageError, match=told):
        asked(numbers, caudal.SparkOptions(master="spark://a:7077"))
    assert session.range(3).count() == 3


class Meeting(Silent):
    """Listens to two runs, which meet in their middle; then the second waits for the first to end.
    Notes a setting that both of them need until their end."""

    def __init__(self, session: Any, run: Callable[["Meeting"], None]) -> None:
        self.session = session
        self.both = threading.Barrier(2)
        self.first, self.second = (threading.Thread(target=run, args=(self,)) for _ in "ab")
        self.met: set[threading.Thread] = set()
        self.found: list[str | None] = []

    def table(self, name: str, done_bytes: int, total_bytes: int) -> None:
        one = threading.current_thread()
        if one not in self.met:
            self.met.add(one)
            self.both.wait(GUARD_SECONDS)
            if one is self.second:
                self.first.join()

    def query(self, name: str, seconds: float) -> None:
        self.found.append(self.session.conf.get(ADAPTIVE, None))


def test_two_runs_at_once_leave_the_settings(session: Any, numbers: Path) -> None:
    """The end of the first changes nothing for the second."""
    before, answers = session.conf.get(ADAPTIVE, None), []

    def run(listener: Meeting) -> None:
        answers.append(asked(numbers, session, listener))

    meeting = Meeting(session, run)
    meeting.first.start()
    meeting.second.start()
    meeting.second.join()
    assert answers == [EXPECTED, EXPECTED]
    assert meeting.found == ["false", "false"]
    assert session.conf.get(ADAPTIVE, None) == before


def test_jobs_have_the_properties_of_the_caller(session: Any) -> None:
    """Such as the pool of the scheduler, and tags."""
    context, pool = session.sparkContext, "spark.scheduler.pool"
    context.setLocalProperty(pool, "mine")
    session.addTag("own")
    try:
        found = SparkSide(session).run(lambda: (context.getLocalProperty(pool), session.getTags()))
        assert context.getLocalProperty("spark.jobGroup.id") is None
    finally:
        context.setLocalProperty(pool, None)
        session.clearTags()
    assert found == ("mine", {"own"})


def test_a_session_with_large_types_answers_too(
    session: Any, numbers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("caudal.spark.frames.MOST_BYTES", -1)  # folds run on Spark
    session.conf.set(LARGE, "true")
    try:
        assert asked(numbers, session) == EXPECTED
        assert session.conf.get(LARGE) == "true"
    finally:
        session.conf.unset(LARGE)


@pytest.mark.parametrize("given", ["local[2]", 5, {"master": "local"}])
def test_what_is_no_session_is_refused(given: Any, numbers: Path) -> None:
    with pytest.raises(UsageError, match="is no session of Spark: give a SparkSession"):
        asked(numbers, given)


def test_an_error_of_a_task_is_its_reason(
    session: Any, numbers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> Any:
        def run(batches: Any) -> Any:
            for _ in batches:
                raise MemoryError
            yield

        return run

    monkeypatch.setattr("caudal.spark.bootstrap.task_function", failing)
    with pytest.raises(SparkFailedError, match=r"^Spark failed: MemoryError$"):
        asked(numbers, session)
