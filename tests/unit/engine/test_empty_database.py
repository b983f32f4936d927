"""A database that was asked about statements is handed on as an empty one."""

import pytest

from caudal.duck import empty_database
from caudal.duck.database import Connection, keywords, open_database
from caudal.duck.empty_database import lent_database, take_database
from caudal.duck.trees import parse_tree
from caudal.kernels.sentiment import load_model


@pytest.fixture(autouse=True)
def _no_idle_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(empty_database, "_idle", [])


def test_a_run_takes_the_database_that_parsed() -> None:
    with lent_database() as lent:
        pass
    parse_tree("SELECT 1")
    keywords.__wrapped__()
    with open_database(load_model("lexicon")) as taken:
        assert taken is lent
        assert not taken.execute("SHOW TABLES").fetchall()


def test_a_database_is_given_to_one_only() -> None:
    with lent_database() as one, lent_database() as other:
        assert one is not other
    assert take_database() is not take_database()


@pytest.mark.parametrize("contained", [True, False])
def test_settings_do_not_depend_on_where_the_database_comes_from(contained: bool) -> None:
    told: list[dict[str, object]] = []
    for ask in (lambda: None, lambda: parse_tree("SELECT 1")):
        ask()
        with open_database(load_model("lexicon"), contained=contained) as connection:
            told.append(dict(_settings(connection)))
    told[0]["temp_directory"] = told[1]["temp_directory"] = bool(told[0]["temp_directory"])
    assert told[0] == told[1]
    assert told[0]["python_enable_replacements"] == "false"
    assert told[0]["enable_external_access"] == ("false" if contained else "true")


def _settings(connection: Connection) -> list[tuple[str, str]]:
    return [
        (str(name), str(value))
        for name, value in connection.execute(
            "SELECT name, value FROM duckdb_settings()"
        ).fetchall()
    ]
