"""Questions and loads that came before are bound once, and answered as before."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness.shelves import load_app

from caudal.application import find_application
from caudal.datasets.shelf import Shelf
from caudal.duck.database import open_database
from caudal.duck.dataset_tables import AppTables
from caudal.embedded import dataset_ask, dataset_tables
from caudal.embedded.dataset_ask import ask
from caudal.embedded.dataset_tables import bind_tables
from caudal.generate import generate
from caudal.kernels.sentiment import load_model
from caudal.model import Application
from caudal.run_options import RunOptions
from caudal.sql.adhoc import with_adhoc_query


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    folder = tmp_path_factory.mktemp("kept")
    generate("books", scale=0.002, seed=5, out=folder / "books")
    return load_app("books", folder / "books", folder / "shelf")


def test_a_question_is_bound_once(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, kept = find_application("books"), tmp_path / "bindings"
    options = RunOptions(threads=1, kept_bindings=kept)
    plain = ask(app, shelf, ["q1", "q2"], None, RunOptions(threads=1))
    first = ask(app, shelf, ["q1", "q2"], None, options)
    ask(app, shelf, ["q1", "q2"], {"min_decades": 1}, options)
    assert len(list(kept.iterdir())) == 2, "another value is another question"
    with monkeypatch.context() as patch:
        patch.delattr(dataset_ask, "bind_over")
        again = ask(app, shelf, ["q1", "q2"], None, options)
        other = ask(app, shelf, ["q1", "q2"], {"min_decades": 1}, options)
    for name in ("q1", "q2"):
        assert again[name].table.equals(plain[name].table)
        assert first[name].table.equals(plain[name].table)
    assert other["q2"].table.num_rows > plain["q2"].table.num_rows


def test_a_question_that_asks_the_clock_or_a_file_is_bound_each_time(
    shelf: Shelf, tmp_path: Path
) -> None:
    kept = tmp_path / "bindings"
    options = RunOptions(threads=1, kept_bindings=kept)
    (tmp_path / "x.csv").write_text("a\n1\n")
    for sql in (
        "SELECT count(*) AS n, now() AS t FROM books",
        f"SELECT count(*) AS n FROM '{tmp_path / 'x.csv'}'",
    ):
        app = with_adhoc_query(find_application("books"), sql)
        name = app.queries[-1].name
        assert ask(app, shelf, [name], None, options)[name].table.num_rows == 1
    assert not kept.exists()


def test_tables_are_bound_once_for_all_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "bindings"

    def bound(app: Application, sentiment: str = "lexicon", *, keep: bool = True) -> AppTables:
        options = RunOptions(sentiment=sentiment, kept_bindings=kept if keep else None)
        with open_database(load_model()) as connection:
            return bind_tables(app, connection, options)

    for name in ("books", "movies"):
        app = find_application(name)
        made = bound(app, keep=False)
        assert bound(app) == made
        with monkeypatch.context() as patch:
            patch.delattr(dataset_tables, "bind_app_tables")
            assert bound(app) == made, "recalled"
            with pytest.raises(NameError):
                bound(app, "other")
            table = app.tables[0]
            changed = replace(table, sql=f"{table.sql}\n-- changed")
            with pytest.raises(NameError):
                bound(replace(app, tables=(changed, *app.tables[1:])))
