"""A binding that is kept is the binding that would be made, and nothing that may change is kept."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import duckdb
import pytest

from caudal.application import find_application
from caudal.duck import kept_bindings
from caudal.duck.bind import RunBinding, bind, choose_queries
from caudal.duck.database import open_database
from caudal.duck.kept_bindings import MOST_FILES, bind_or_recall
from caudal.formats.digest import digest
from caudal.kernels.sentiment import load_model
from caudal.model import Application, ParameterValue, Query, Table
from caudal.sql.adhoc import with_adhoc_query

FILMS = Table(
    "films",
    ("films.csv",),
    ("id", "title"),
    "SELECT to_integer(id) AS id, title, CASE WHEN id IS NULL THEN 'no id' END AS reject FROM raw",
    "tables/films.sql",
)
COUNT = Query("q", "How many?", "SELECT count(*) AS films FROM films WHERE id > $least", "q.sql")
APP = Application("small", "", Path(), (FILMS,), (COUNT,), {"least": 1})


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with open_database(load_model()) as opened:
        yield opened


class Binding:
    """Binds with a folder of kept bindings; counts how often a binding was made."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
        self.connection = connection
        self.folder = folder
        self.made = 0

    def __call__(self, app: Application = APP, **parameters: ParameterValue) -> RunBinding:
        def counted(*given: object) -> RunBinding:
            self.made += 1
            return bind(*given)  # type: ignore[arg-type]

        chosen = choose_queries(app, None, parameters)
        with patch.object(kept_bindings, "bind", counted):
            return bind_or_recall(self.folder, app, chosen, parameters, self.connection)

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.iterdir()) if self.folder.exists() else []


@pytest.fixture
def binding(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> Binding:
    return Binding(connection, tmp_path / "cache" / "bindings")


@pytest.mark.parametrize("name", ["movies", "books"])
def test_a_recalled_binding_equals_the_one_that_was_made(name: str, binding: Binding) -> None:
    app = find_application(name)
    made = binding(app)
    assert binding(app) == made
    assert binding.made == 1


def test_an_adhoc_query_is_kept_too(binding: Binding) -> None:
    app = with_adhoc_query(find_application("books"), "SELECT avg(score) FROM reviews")
    assert binding(app) == binding(app)
    assert binding.made == 1


def test_whatever_is_asked_otherwise_is_bound_anew(binding: Binding) -> None:
    binding()
    binding(least=2)
    binding(replace(APP, parameters={"least": 1.0}))
    binding(replace(APP, queries=(replace(COUNT, title="Other"),)))
    binding(replace(APP, tables=(replace(FILMS, sql=FILMS.sql.replace("title,", "")),)))
    assert binding.made == 5


@pytest.mark.parametrize("changed", ["__version__", "_code", "version"])
def test_other_code_and_other_libraries_bind_anew(changed: str, binding: Binding) -> None:
    binding()
    other = "9.9" if changed == "__version__" else lambda *_: "9.9"
    with patch.object(kept_bindings, changed, other):
        binding()
    assert binding.made == 2


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT now() AS x, count(*) FROM films",
        "SELECT count(*) FROM films WHERE current_date > DATE '2020-01-01'",
        "SELECT count(*) FROM films, (SELECT 1 FROM glob('*'))",
    ],
)
def test_what_depends_on_more_is_not_kept(sql: str, binding: Binding) -> None:
    app = replace(APP, queries=(replace(COUNT, sql=sql),))
    binding(app)
    binding(app)
    assert binding.files == []
    assert binding.made == 2


def test_a_file_that_the_sql_reads_is_not_kept(binding: Binding, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    app = replace(APP, queries=(replace(COUNT, sql=f"SELECT * FROM films, '{other}'"),))
    for head in ("a", "b"):
        other.write_text(f"{head}\n1\n")
        assert head in binding(app).queries[0].names
    assert binding.files == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:],
        lambda data: digest(b"{}").encode() + b"\n{}",
        lambda data: digest(b"[1").encode() + b"\n[1",
    ],
)
def test_a_damaged_file_is_ignored_and_written_again(damage: object, binding: Binding) -> None:
    made = binding()
    (file,) = binding.files
    whole = file.read_bytes()
    file.write_bytes(damage(whole))  # type: ignore[operator]
    assert binding() == made
    assert file.read_bytes() == whole


def test_a_file_of_another_user_is_ignored(binding: Binding) -> None:
    made = binding()
    with patch.object(os, "geteuid", lambda: -1):
        assert binding() == made
    assert binding.made == 2


def test_a_link_is_ignored(binding: Binding, tmp_path: Path) -> None:
    binding()
    (file,) = binding.files
    file.rename(tmp_path / "moved")
    file.symlink_to(tmp_path / "moved")
    binding()
    assert binding.made == 2
    assert not file.is_symlink()


def test_a_folder_that_takes_no_files_costs_nothing_else(binding: Binding) -> None:
    binding.folder.parent.write_text("not a folder")
    assert binding() == binding()


def test_what_was_not_used_for_longest_is_forgotten(binding: Binding) -> None:
    binding()
    (used,) = binding.files
    for number in range(MOST_FILES):
        other = binding.folder / f"{number:03}.binding"
        other.write_bytes(b"")
        os.utime(other, (1000 + number, 1000 + number))
    binding()
    binding(least=5)
    assert len(binding.files) == MOST_FILES
    assert used in binding.files
    assert binding.folder / "000.binding" not in binding.files


def test_without_a_folder_nothing_is_kept(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    chosen = choose_queries(APP, None)
    assert bind_or_recall(None, APP, chosen, {}, connection).queries[0].names == ("films",)
