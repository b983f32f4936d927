"""Parameters, data frames and progress of `caudal.sql` and `caudal.run`."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest

import caudal
from caudal.errors import UsageError
from caudal.results.notebook import NotebookProgress

CASE = Path(caudal.__file__).parent / "apps" / "movies" / "cases" / "a_single_film"
COLUMNS = {"id": [1, 2, 3], "name": ["one", None, "three"]}


@pytest.mark.parametrize(
    "frame",
    [
        pandas.DataFrame(COLUMNS, index=[7, 8, 9]),
        polars.DataFrame(COLUMNS),
        pa.table(COLUMNS),
        pa.record_batch(COLUMNS),
        pa.table(COLUMNS).to_reader(),
        caudal.sql("SELECT * FROM (VALUES (1, 'one'), (2, NULL), (3, 'three')) t(id, name)"),
    ],
    ids=["pandas", "polars", "arrow", "batch", "reader", "result"],
)
def test_a_frame_is_a_table(frame: Any) -> None:
    found = caudal.sql("SELECT * FROM df WHERE id > $least", tables={"df": frame},
                       parameters={"least": 1})  # fmt: skip
    assert found.rows() == [{"id": 2, "name": None}, {"id": 3, "name": "three"}]


def test_frames_join_files_and_applications(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id,n\n1,10\n2,20\n")
    df = pandas.DataFrame({"id": [2], "day": [date(2020, 1, 1)]})
    joined = caudal.sql(
        "SELECT n, day FROM 'x.csv' JOIN df USING (id)", data=tmp_path, tables={"df": df}
    )
    assert joined.rows() == [{"n": 20, "day": date(2020, 1, 1)}]
    films = caudal.sql(
        "SELECT count(*) AS n FROM movies WHERE id IN (SELECT id FROM wanted)",
        "movies", CASE, tables={"wanted": caudal.sql("SELECT id FROM movies", "movies", CASE)},
    )  # fmt: skip
    assert films.rows() == [{"n": 1}]


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        ({"movies": pa.table(COLUMNS)}, "the application has a table 'movies'"),
        ({"raw": pa.table(COLUMNS)}, "choose another name than 'raw'"),
        ({"a b": pa.table(COLUMNS)}, "cannot be the name of a table"),
        ({"a": pa.table(COLUMNS), "A": pa.table(COLUMNS)}, "'a' is given twice"),
        ({"a": [1, 2]}, "table 'a' is a list: give a frame"),
        ({"a": pandas.DataFrame({"x": [1, "y"]})}, "table 'a' cannot be converted to Arrow"),
        ({"a": pandas.DataFrame({"x": [1], "X": [2]})}, "columns 'x' and 'X' have the same name"),
        ({"a": pa.table({})}, "table 'a' has no columns"),
    ],
)
def test_what_cannot_be_a_table(tables: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        caudal.sql("SELECT 1", "movies", CASE, tables=tables)


def test_frames_need_the_embedded_engine() -> None:
    with pytest.raises(UsageError, match='data frames are not read by engine="split"'):
        caudal.sql("SELECT 1", tables={"df": pa.table(COLUMNS)}, engine="split")


def test_a_name_in_sql_is_never_a_variable() -> None:
    rows = options = pa.table(COLUMNS)
    assert rows is options
    for name in ("rows", "options", "connection", "sources", "app"):
        with pytest.raises(UsageError, match="does not exist"):
            caudal.sql(f"SELECT * FROM {name}")


@pytest.mark.parametrize("engine", ["embedded", "split"])
def test_parameters_of_sql(engine: str) -> None:
    text = "'; DROP TABLE movies; --"
    given: dict[str, Any] = {
        "text": text, "day": date(2020, 2, 29), "cost": Decimal("1.10"), "none": None,
        "some": [1, 2], "n": np.int64(-3),
    }  # fmt: skip
    select = (
        "SELECT $text AS t, $day AS d, $cost AS c, $none AS x, $some AS s, 5 -$n AS n FROM movies"
    )
    [row] = caudal.sql(select, "movies", CASE, parameters=given, engine=engine)
    assert row == {"t": text, "d": date(2020, 2, 29), "c": 1.1, "x": None, "s": [1, 2], "n": 8}


def test_parameters_of_an_application_have_its_types() -> None:
    select = "SELECT $since_year AS y"
    assert caudal.sql(select, "movies", CASE)["y"] == [2000]
    with pytest.raises(UsageError, match="since_year must be a whole number"):
        caudal.sql(select, "movies", CASE, parameters={"since_year": "2010"})
    for engine in ("embedded", "split"):
        with pytest.raises(UsageError, match="since_year must be a whole number"):
            caudal.run("movies", CASE, parameters={"since_year": 2010.5}, engine=engine)
    with pytest.raises(UsageError, match="no value for \\$y: give"):
        caudal.sql("SELECT $y")
    with pytest.raises(UsageError, match="has no parameter 'z'; it has none"):
        caudal.sql("SELECT 1", parameters={"z": 1})


class Display:
    """IPython's display, as far as progress uses it: it keeps what was shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def __call__(self, view: Any, *, display_id: bool) -> "Display":
        assert display_id
        self.update(view)
        return self

    def update(self, view: Any) -> None:
        self.shown.append(view._repr_html_())


def test_progress_in_a_notebook_waits_is_drawn_rarely_and_leaves_nothing() -> None:
    now, display = [0.0], Display()
    progress = NotebookProgress(display, lambda: now[0])
    progress.table("movies", 0, 10)
    assert display.shown == []
    now[0] = 0.6
    progress.table("mov<ies", 2_500_000, 10_000_000)
    progress.table("mov<ies", 5_000_000, 10_000_000)
    assert len(display.shown) == 1
    assert "mov&lt;ies" in display.shown[0]
    assert "2.5 of 10.0 MB" in display.shown[0]
    now[0] = 0.9
    progress.query("q1", 0.25)
    assert "q1: 0.25 s" in display.shown[1]
    progress.remove()
    assert display.shown[2] == ""


def test_a_receiver_of_progress_is_called() -> None:
    seen: list[str] = []
    receiver = SimpleNamespace(
        table=lambda name, done, total: seen.append(name),
        query=lambda name, seconds: seen.append(name),
    )
    caudal.run("movies", CASE, "q2", progress=receiver)
    assert {"movies", "q2"} <= set(seen)
