"""The Spark engine gives the embedded engine's rows and rejects, on a real Spark."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import caudal
from caudal.application import find_application
from caudal.errors import QueryError, RejectedRowError, UsageError
from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.model import Application, Query, RejectedRow, Table
from caudal.results.answers import Answers
from caudal.run_options import Engine, RunOptions, Silent, SparkInputs, SparkOptions
from caudal.spark import bootstrap, frames, shipping
from caudal.spark.fingerprint import fingerprint

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


def assert_identical(found: Answers, expected: Answers) -> None:
    assert list(found.results) == list(expected.results)
    for name in expected.results:
        assert found[name].table.equals(expected[name].table), name
        assert found[name].table.schema == expected[name].table.schema, name


NOTHING, SOME = -1, 3_000  # bytes that the driver takes


@pytest.mark.parametrize(
    ("app", "inputs", "most_bytes"),
    [
        ("movies", SparkInputs.SENT, frames.MOST_BYTES),
        ("movies", SparkInputs.SHARED, SOME),
        ("books", SparkInputs.SHARED, NOTHING),
    ],
)
def test_shipped_queries_have_the_same_rows_and_rejects(
    app: str,
    inputs: SparkInputs,
    most_bytes: int,
    session: Any,
    generated: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frames, "MOST_BYTES", most_bytes)
    reports: list[list[RejectedRow]] = [[], []]
    application, sources = find_application(app), Sources(generated / app)
    expected = run_with(
        Engine.EMBEDDED, application, sources, options=RunOptions(reject_sink=reports[0].append)
    )
    options = RunOptions(
        spark=SparkOptions(session, inputs=inputs),
        partitions=2,
        batch_bytes=1 << 20,
        reject_sink=reports[1].append,
    )
    found = run_with(Engine.SPARK, application, sources, options=options)
    assert_identical(found, expected)
    assert reports[1] == reports[0]
    assert found.rejects.counts() == expected.rejects.counts()
    assert found.rejects.notes == expected.rejects.notes
    assert len(reports[0]) > 10


@pytest.fixture
def skewed(tmp_path: Path) -> Path:
    """Nine of ten rows have one key; one row is damaged."""
    rows = "".join(f"{0 if n % 10 else n},{n * 0.1}\n" for n in range(3000))
    (tmp_path / "t.csv").write_text(f"k,v\n{rows}x,\n")
    return tmp_path


CLEAN = (
    "SELECT TRY_CAST(k AS INTEGER) AS k, TRY_CAST(v AS DOUBLE) AS v, "
    "CASE WHEN TRY_CAST(k AS INTEGER) IS NULL THEN 'k is no number' END AS reject FROM raw"
)


def application(queries: dict[str, str]) -> Application:
    made = tuple(Query(name, name, text, f"{name}.sql") for name, text in queries.items())
    return Application("t", "", Path(), (Table("t", ("t.csv",), ("k", "v"), CLEAN, "t.sql"),), made)


def test_a_failing_query_and_a_profile(
    skewed: Path, session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "MOST_BYTES", NOTHING)
    sound = {
        "sums": "SELECT k, sum(v) AS s, count(*) AS n FROM t GROUP BY k ORDER BY k",
        "lists": "SELECT k, list(v ORDER BY v) AS l FROM t GROUP BY k ORDER BY k LIMIT 3",
    }
    failing = {"bad": "SELECT error('no' || k) AS e FROM t"}
    options = RunOptions(
        spark=SparkOptions(session), partitions=3, batch_bytes=8 << 10, profile=True
    )
    sources = Sources(skewed)
    expected = run_with(Engine.EMBEDDED, application(sound), sources)
    found = run_with(Engine.SPARK, application({**sound, **failing}), sources, options=options)
    assert_identical(found, expected)
    assert list(found.failures) == ["bad"]
    with pytest.raises(QueryError, match=r"bad.sql: .*no"):
        found["bad"].rows()
    assert found.rejects.counts() == expected.rejects.counts()
    assert any(one.rows_in for one in found.operators)
    strict = RunOptions(spark=SparkOptions(session), strict=True)
    with pytest.raises(RejectedRowError, match=r"line 3002: k is no number"):
        run_with(Engine.SPARK, application(sound), sources, options=strict)


def test_sql_over_files_and_the_settings_of_the_session(skewed: Path, session: Any) -> None:
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    session.conf.set(name, "777")
    select = "SELECT count(*) AS n, sum(v) AS s FROM 't.csv'"
    found = caudal.sql(select, data=skewed, engine="spark", spark=session, progress=False)
    assert found.rows() == caudal.sql(select, data=skewed, progress=False).rows()
    assert session.conf.get(name) == "777"
    assert session.range(3).count() == 3  # the session is left open


@pytest.mark.parametrize("inputs", [SparkInputs.AUTO, SparkInputs.SENT])
def test_what_was_found_about_files_is_told(
    inputs: SparkInputs, tmp_path: Path, session: Any
) -> None:
    """Also of two files of one table, of which one is as usual."""
    (tmp_path / "a.csv").write_text("k,v\n1,a\n")
    (tmp_path / "b.csv").write_bytes(b"k;v\n2;a\n3;b\n")
    (tmp_path / "c.csv").write_text("k\tw\n2\tx\n")
    app = Application(
        "t", "", Path(),
        (
            Table("t", ("a.csv", "b.csv"), ("k", "v"), "SELECT k, v FROM raw", "t.sql"),
            Table("u", ("c.csv",), ("k", "w"), "SELECT k, w FROM raw", "u.sql"),
        ),
        (Query("q", "q", "SELECT v, w FROM t LEFT JOIN u USING (k) ORDER BY k", "q.sql"),),
    )  # fmt: skip
    expected = run_with(Engine.EMBEDDED, app, Sources(tmp_path))
    options = RunOptions(spark=SparkOptions(session, inputs=inputs))
    found = run_with(Engine.SPARK, app, Sources(tmp_path), options=options)
    assert_identical(found, expected)
    assert len(expected.rejects.notes) == 2
    assert found.rejects.notes == expected.rejects.notes


def test_files_that_their_names_do_not_find_travel(tmp_path: Path, session: Any) -> None:
    (tmp_path / "a1.csv").write_text("k,v\n1,a\n")
    Path(os.fsdecode(bytes(tmp_path / "a2") + b"\xff.csv")).write_text("k,v\n2,b\n")
    select = "SELECT k, v FROM 'a*.csv' ORDER BY k"
    found = caudal.sql(select, data=tmp_path, engine="spark", spark=session, progress=False)
    assert found.rows() == caudal.sql(select, data=tmp_path, progress=False).rows()
    assert len(found.rows()) == 2


def test_what_a_task_loaded_is_not_searched_for_garbage(skewed: Path, session: Any) -> None:
    """Spark's daemon collects garbage after every task: with all of Caudal it took 50 ms."""

    def frozen(batches: Any) -> Any:
        import gc

        for _ in batches:
            yield pa.record_batch({"n": pa.array([gc.get_freeze_count()], pa.int64())})

    caudal.sql("SELECT count(*) FROM 't.csv'", data=skewed, engine="spark", spark=session)
    rows = session.range(0, 8, 1, 8).mapInArrow(frozen, "n bigint").toArrow()
    assert max(rows.column("n").to_pylist()) > 10_000


class Impatient(Silent):
    """Presses Ctrl-C as soon as a table is being read."""

    def table(self, name: str, done_bytes: int, total_bytes: int) -> None:
        raise KeyboardInterrupt


def test_an_interrupt_cancels_the_jobs_of_the_run(
    skewed: Path, session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(*_: Any) -> Any:
        def run(batches: Any) -> Any:
            import signal

            yield from batches
            signal.pause()

        return run

    monkeypatch.setattr(bootstrap, "task_function", endless)
    sources, options = Sources(skewed), RunOptions(spark=SparkOptions(session))
    with pytest.raises(KeyboardInterrupt):
        run_with(
            Engine.SPARK,
            application({"q": "SELECT count(*) AS n FROM t"}),
            sources,
            options=options,
            progress=Impatient(),
        )
    assert list(session.sparkContext.statusTracker().getActiveJobsIds()) == []


def test_other_code_on_executors_is_refused_in_one_line(
    skewed: Path, session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipping, "fingerprint", lambda: {**fingerprint(), "caudal": "9.9"})
    options = RunOptions(spark=SparkOptions(session))
    told = r"^the code of the executors differs \(caudal \S+ not 9.9\): install caudal 9.9 on .*$"
    with pytest.raises(UsageError, match=told):
        run_with(
            Engine.SPARK,
            application({"q": "SELECT count(*) AS n FROM t"}),
            Sources(skewed),
            options=options,
        )
