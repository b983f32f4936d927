"""A session that the user has already: it is used, and left as it was."""

import signal
import threading
from pathlib import Path
from typing import Any

import pytest

import caudal
from caudal.errors import SparkFailedError, UsageError

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


def asked(numbers: Path, spark: Any = None) -> list[dict[str, Any]]:
    return caudal.sql(QUESTION, data=numbers, engine="spark", spark=spark, progress=False).rows()


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


def test_two_runs_at_once_leave_the_settings(session: Any, numbers: Path) -> None:
    before, found = session.conf.get(ADAPTIVE, None), []
    runs = [threading.Thread(target=lambda: found.append(asked(numbers, session))) for _ in "ab"]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert found == [EXPECTED, EXPECTED]
    assert session.conf.get(ADAPTIVE, None) == before


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
