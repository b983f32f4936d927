"""A dataset on Spark: executors read its files, the driver only lists them."""

from pathlib import Path
from typing import Any

import pytest

import caudal
from caudal.application import find_application
from caudal.datasets.shelf import Shelf, open_shelf
from caudal.errors import DataError, UsageError
from caudal.generate import generate
from caudal.local.engines import ask_with
from caudal.run_options import Engine, RunOptions, SparkOptions
from caudal.spark import frames
from tests.spark.test_answers import assert_identical

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def shelf(generated: Path, tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    place = tmp_path_factory.mktemp("shelf")
    caudal.load("movies", generated / "movies", to=place)
    return open_shelf(str(place))


@pytest.mark.parametrize("most_bytes", [-1, frames.MOST_BYTES])
def test_a_dataset_has_the_rows_of_the_embedded_engine(
    most_bytes: int, shelf: Shelf, session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "MOST_BYTES", most_bytes)
    app = find_application("movies")
    expected = ask_with(Engine.EMBEDDED, app, shelf)
    options = RunOptions(spark=SparkOptions(session), partitions=2)
    assert_identical(ask_with(Engine.SPARK, app, shelf, options=options), expected)


def test_any_select_and_its_rejected_rows_from_python(shelf: Shelf, session: Any) -> None:
    dataset = caudal.Dataset(shelf.place)
    select = 'SELECT "table", reason, count(*) AS n FROM rejects GROUP BY ALL ORDER BY ALL'
    found = dataset.sql(select, "movies", spark=session)
    assert len(found.rows()) > 1
    assert found.rows() == dataset.sql(select, "movies").rows()
    assert dataset.run("movies", "q2", spark=session)["q2"].table.num_rows > 0


def test_an_older_version_is_asked(generated: Path, session: Any, tmp_path: Path) -> None:
    place = tmp_path / "shelf"
    first = caudal.load("movies", generated / "movies", to=place)
    generate("movies", scale=0.001, seed=6, out=tmp_path / "more")
    caudal.load("movies", tmp_path / "more", to=place)
    select, newest = "SELECT count(*) AS n FROM ratings", caudal.Dataset(place)
    before = caudal.Dataset(place, as_of=first.version)
    found = before.sql(select, "movies", spark=session).rows()
    assert found == before.sql(select, "movies").rows()
    assert found != newest.sql(select, "movies", spark=session).rows()


def test_a_file_that_executors_miss_and_inputs_that_travel_are_refused(
    shelf: Shelf, generated: Path, session: Any, tmp_path: Path
) -> None:
    app, options = find_application("movies"), RunOptions(spark=SparkOptions(session))
    with pytest.raises(UsageError, match="leave --inputs sent out"):
        caudal.Dataset(shelf.place).run("movies", spark=SparkOptions(session, inputs="sent"))
    caudal.load("movies", generated / "movies", to=tmp_path / "other")
    other = open_shelf(str(tmp_path / "other"))
    for path in (tmp_path / "other").rglob("*.parquet"):
        path.unlink()
    with pytest.raises(DataError, match="an executor misses a file"):
        ask_with(Engine.SPARK, app, other, ["q2"], options=options)
