"""Statements as they are typed, and what may complete them: pure decisions of the prompt."""

import pytest

from caudal.cli.shell.commands import parse_command
from caudal.cli.shell.statements import is_complete, statements, take_statement
from caudal.cli.shell.suggestions import KnownNames, suggest
from caudal.errors import UsageError

KNOWN = KnownNames(
    tables={"orders": ["id", "amount", "Full Name"], "customers": ["id", "name"]},
    functions=["sum", "sentiment", "substr"],
    keywords=["select", "from", "semi"],
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';'; SELECT \";\" -- ;\n; /* ; */", ["SELECT ';'", 'SELECT ";" -- ;']),
        ("SELECT $$;$$; SELECT $a$ $$;' $a$;", ["SELECT $$;$$", "SELECT $a$ $$;' $a$"]),
        ("SELECT 'it''s;'", ["SELECT 'it''s;'"]),
        (".tables\nSELECT 1;\n.quit", [".tables", "SELECT 1", ".quit"]),
        ("-- a note\n.mode csv\n", [".mode csv"]),
        ("SELECT\n.5;", ["SELECT\n.5"]),
        ("; ;; -- nothing\n", []),
        ("SELECT a - b / c", ["SELECT a - b / c"]),
        ("SELECT 'open;", ["SELECT 'open;"]),
        ("", []),
    ],
)
def test_statements(text: str, found: list[str]) -> None:
    assert statements(text) == found


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True), ("  \n", True), (".help", True), ("SELECT 1;", True), ("SELECT 1", False),
        ("SELECT ';", False), ("SELECT 1 -- ;", False), ("SELECT 1; SELECT", True), (";", True),
    ],
)  # fmt: skip
def test_what_enter_runs(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_a_statement_is_taken_with_the_rest() -> None:
    assert take_statement("SELECT 1;\nSELECT") == ("SELECT 1", "\nSELECT")
    assert take_statement("SELECT") is None


@pytest.mark.parametrize(
    ("before", "first", "missing"),
    [
        ("SELECT * FROM o", ["orders"], "sum("),
        ("SELECT * FROM ", ["orders", "customers"], "amount"),
        ("SELECT * FROM orders JOIN c", ["customers"], "count("),
        ("SELECT * FROM orders, c", ["customers"], "select"),
        ("SELECT s", ["sum(", "sentiment(", "substr(", "select", "semi"], "id"),
        ("SELECT S", ["sum(", "sentiment(", "substr(", "SELECT", "SEMI"], "id"),
        ("SELECT * FROM customers WHERE n", ["name"], "amount"),
        ("SELECT orders.", ["id", "amount", '"Full Name"'], "name"),
        ("FROM orders AS o WHERE o.a", ["amount"], "name"),
        ("FROM orders WHERE full", ['"Full Name"'], "name"),
        (".s", ["schema"], "sum("),
        (".schema c", ["customers"], "csv"),
        (".mode c", ["csv"], "customers"),
        (".timing o", ["on", "off"], "orders"),
    ],
)
def test_suggestions(before: str, first: list[str], missing: str) -> None:
    found = [one.text for one in suggest(before, KNOWN)]
    assert found[: len(first)] == first
    assert missing not in found


def test_a_suggestion_replaces_what_was_typed() -> None:
    (found,) = suggest("SELECT * FROM ord", KNOWN)
    assert (found.text, found.length, found.kind) == ("orders", 3, "table")


def test_commands() -> None:
    assert parse_command(".mode csv ") == ("mode", "csv")
    assert parse_command(".EXIT") == ("quit", "")
    assert parse_command(".tables;") == ("tables", "")
    with pytest.raises(UsageError, match=r"no command \.drop"):
        parse_command(".drop all")
