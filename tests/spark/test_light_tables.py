"""The driver maps light tables; executors read what it made."""

from pathlib import Path
from typing import Any

import pytest

from caudal.errors import CaudalError, QueryError, RejectedRowError, UnreadableError
from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.model import Application, Query, RejectedRow, Table
from caudal.run_options import Engine, RunOptions, SparkInputs, SparkOptions
from caudal.spark import frames, tasks
from caudal.spark.engine import SparkJob

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

ALL_THERE = -1  # bytes that the driver folds
QUERIES = {
    "joined": "SELECT name, sum(v) AS s, count(*) AS n FROM facts JOIN kinds USING (k) "
    "GROUP BY name ORDER BY name",
    "missing": "SELECT k, count(*) AS n FROM facts ANTI JOIN kinds USING (k) GROUP BY k ORDER BY k",
    "rows": "SELECT k, name FROM kinds ORDER BY k",
}


def application(queries: dict[str, str]) -> Application:
    kinds = (
        "SELECT TRY_CAST(k AS INTEGER) AS k, name, "
        "CASE WHEN TRY_CAST(k AS INTEGER) IS NULL THEN 'k is no number' END AS reject FROM raw"
    )
    facts = "SELECT CAST(k AS INTEGER) AS k, CAST(v AS DECIMAL(12, 1)) AS v FROM raw"
    tables = (
        Table("kinds", ("kinds.csv",), ("k", "name"), kinds, "kinds.sql"),
        Table("facts", ("facts.csv",), ("k", "v"), facts, "facts.sql"),
    )
    made = tuple(Query(name, name, text, f"{name}.sql") for name, text in queries.items())
    return Application("t", "", Path(), tables, made)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("light")
    kinds = "".join(f"{n},kind {n % 7}\n" for n in range(40))
    facts = "".join(f"{n * 7 % 61},{n / 10:.1f}\n" for n in range(20_000))
    (folder / "kinds.csv").write_text(f"k,name\n{kinds}x,bad\n")
    (folder / "facts.csv").write_text(f"k,v\n{facts}")
    return folder


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables of which the driver maps waves."""
    found: list[str] = []
    mapped_here = SparkJob._mapped_here

    def noted(job: SparkJob, wave: Any, work: Any, report: Any) -> bool:
        found.append(work.table)
        return mapped_here(job, wave, work, report)

    monkeypatch.setattr(SparkJob, "_mapped_here", noted)
    return found


@pytest.mark.parametrize("inputs", SparkInputs)
@pytest.mark.parametrize("most_bytes", [frames.MOST_BYTES, ALL_THERE])
def test_executors_read_what_the_driver_mapped(
    inputs: SparkInputs,
    most_bytes: int,
    here: list[str],
    session: Any,
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frames, "MOST_BYTES", most_bytes)
    reports: list[list[RejectedRow]] = [[], []]
    app, sources = application(QUERIES), Sources(data)
    expected = run_with(
        Engine.EMBEDDED, app, sources, options=RunOptions(reject_sink=reports[0].append)
    )
    options = RunOptions(
        spark=SparkOptions(session, inputs=inputs),
        partitions=3,
        batch_bytes=32 << 10,
        reject_sink=reports[1].append,
        profile=True,
    )
    found = run_with(Engine.SPARK, app, sources, options=options)
    for name in QUERIES:
        assert found[name].table.equals(expected[name].table)
    assert here == ["kinds"]
    assert reports[1] == reports[0] != []
    assert {one.table: one.rows for one in found.tables} == {
        one.table: one.rows for one in expected.tables
    }


def test_mistakes_in_a_light_table_are_those_of_the_application(
    here: list[str], session: Any, data: Path
) -> None:
    app, sources = (
        application({"bad": "SELECT error(name) AS e FROM kinds", **QUERIES}),
        Sources(data),
    )
    options = RunOptions(spark=SparkOptions(session))
    found = run_with(Engine.SPARK, app, sources, options=options)
    assert list(found.failures) == ["bad"]
    with pytest.raises(QueryError, match=r"bad.sql: .*kind"):
        found["bad"].rows()
    strict = RunOptions(spark=SparkOptions(session), strict=True)
    with pytest.raises(RejectedRowError, match=r"line 42: k is no number"):
        run_with(Engine.SPARK, application(QUERIES), sources, options=strict)
    assert here == ["kinds", "kinds"]


def test_what_the_driver_cannot_read_now_is_left_to_executors(
    here: list[str], session: Any, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> int:
        raise UnreadableError("cannot read it: Input/output error")

    monkeypatch.setattr(tasks, "read_range", fails)  # of this process
    app, sources = application(QUERIES), Sources(data)
    found = run_with(
        Engine.SPARK, app, sources, options=RunOptions(spark=SparkOptions(session), partitions=2)
    )
    expected = run_with(Engine.EMBEDDED, app, sources)
    for name in QUERIES:
        assert found[name].table.equals(expected[name].table)
    assert found.rejects.counts() == expected.rejects.counts()
    assert here == ["kinds"]


def test_other_models_than_the_lexicon_are_left_to_executors(
    here: list[str], session: Any, data: Path
) -> None:
    """A model may take long for a small table; this one does not exist."""
    options = RunOptions(spark=SparkOptions(session), sentiment="transformers:/no/model")
    with pytest.raises(CaudalError):
        run_with(Engine.SPARK, application(QUERIES), Sources(data), options=options)
    assert here == []
