"""A broken application gives one clear line that names the file and what to do."""

from pathlib import Path

import pytest

from caudal.application import find_application, load_application, shipped_applications
from caudal.application.check import check_application
from caudal.application.folder import query_title
from caudal.errors import ApplicationError, UsageError

APP = """\
title = "Sales"
[[tables]]
name = "orders"
files = ["orders.csv"]
columns = ["id", "amount"]
[parameters]
least = 3
"""
TABLE = "SELECT to_integer(id) AS id, TRY_CAST(amount AS DOUBLE) AS amount FROM raw"
QUERY = "-- Large\n-- orders\nSELECT id FROM orders WHERE amount >= $least ORDER BY id"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("tables", "queries"):
        (tmp_path / name).mkdir()
    (tmp_path / "app.toml").write_text(APP)
    (tmp_path / "tables" / "orders.sql").write_text(TABLE)
    (tmp_path / "queries" / "large.sql").write_text(QUERY)
    return tmp_path


def test_a_sound_folder(folder: Path) -> None:
    app = load_application(folder)
    assert [table.name for table in app.tables] == ["orders"]
    assert [(query.name, query.title) for query in app.queries] == [("large", "Large orders")]
    assert app.parameters == {"least": 3}
    check_application(app)


def test_the_shipped_applications_are_sound() -> None:
    assert list(shipped_applications()) == ["books", "movies"]
    for name in shipped_applications():
        check_application(find_application(name))


def broken(folder: Path, file: str, text: str | None) -> str:
    path = folder / file
    if text is None:
        path.unlink()
    else:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    with pytest.raises(ApplicationError) as caught:
        check_application(load_application(folder))
    message = str(caught.value)
    assert "\n" not in message
    return message


BROKEN = [
    ("app.toml", None, "app.toml is missing"),
    ("app.toml", "title = ", "not valid TOML"),
    ("app.toml", "title = 'x'", "tables: is missing"),
    ("app.toml", APP + "colour = 1\n[other]\n", "app.toml: "),
    ("app.toml", APP.replace("orders.csv", "").replace('[""]', "[]"), "names no files"),
    ("app.toml", APP.replace('"amount"]', '"id"]'), "lists column 'id' twice"),
    ("app.toml", APP + APP[APP.index("[[") : APP.index("[para")], "app.toml"),
    ("app.toml", APP.replace('"orders"', '"raw"'), "raw"),
    ("tables/orders.sql", None, "orders.sql is missing"),
    ("tables/orders.sql", "", "orders.sql is empty"),
    ("tables/orders.sql", "SELECT nope FROM raw", 'orders.sql: Referenced column "nope" not found'),
    ("tables/orders.sql", "SELEC id", "orders.sql: syntax error"),
    ("tables/orders.sql", "SELECT id, amount AS ID FROM raw", "two columns called 'id'"),
    ("tables/orders.sql", "SELECT 'x' AS reject FROM raw", "no column besides `reject`"),
    ("tables/orders.sql", "DROP TABLE raw", "must hold one SELECT"),
    ("tables/stray.sql", "SELECT 1", "stray.sql belongs to no table"),
    ("queries/large.sql", "SELECT nope FROM orders", 'large.sql: Referenced column "nope"'),
    ("queries/large.sql", "SELECT 1 FROM nothing", "large.sql: Table with name nothing"),
    ("queries/large.sql", "SELECT $unknown FROM orders", "large.sql: no value for $unknown"),
    ("queries/large.sql", "SELECT 1; SELECT 2", "large.sql: must hold one SELECT"),
    ("queries/large.sql", "SELECT 'open", "large.sql: "),
    ("queries/large.sql", None, "queries holds no .sql file"),
    ("queries/two words.sql", "SELECT 1", "'two words' cannot be a name"),
]


@pytest.mark.parametrize(("file", "text", "message"), BROKEN, ids=lambda x: str(x)[:50])
def test_broken_folders(folder: Path, file: str, text: str | None, message: str) -> None:
    assert message in broken(folder, file, text)


def test_a_file_that_is_not_text_is_named(folder: Path) -> None:
    (folder / "queries" / "large.sql").write_bytes(b"SELECT '\xff'")
    with pytest.raises(ApplicationError, match=r"large\.sql is not UTF-8"):
        load_application(folder)


def test_an_unknown_name_lists_the_shipped_ones() -> None:
    with pytest.raises(UsageError, match=r"'cars'.*books, movies.*caudal new"):
        find_application("cars")


def test_titles() -> None:
    assert query_title("-- One\n-- two\n\n-- not this\nSELECT 1", "q") == "One two"
    assert query_title("SELECT 1", "q") == "q"
