"""`caudal shell` in a real terminal, and with statements from a pipe."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.harness.terminal import caudal_in_terminal

from caudal.cli.status import ExitStatus

PROMPT = "caudal>"
ORDERS = "id,name,amount\n1,Ana,2.5\n2,Bo,10\n"


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.csv").write_text(ORDERS)
    return tmp_path


def piped(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "caudal", "shell", *arguments]
    return subprocess.run(command, input=script, capture_output=True, text=True, check=False)


def test_a_person_at_the_prompt(orders: Path) -> None:
    with caudal_in_terminal("shell", "orders.csv", home=orders) as terminal:
        terminal.read_until(PROMPT)
        terminal.type("SELECT sum(amo\t")
        terminal.read_until("unt")  # the rest of the name
        terminal.type(") AS total\r")
        terminal.read_until("...>")
        terminal.type("FROM ord\t")
        terminal.read_until("ers")
        terminal.type(";\r")
        assert "12.5" in terminal.read_until("1 row")
        terminal.type("SELECT nope FROM orders;\r")
        terminal.read_until('Referenced column "nope"')
        terminal.type("SELECT count(*) FROM range(1000000000000);\r")
        terminal.read_until("interrupted", press="\x03")
        terminal.type("\r.quit\r")
        assert terminal.wait() == ExitStatus.OK


def test_the_history_is_there_the_next_time(orders: Path) -> None:
    with caudal_in_terminal("shell", home=orders) as terminal:
        terminal.read_until(PROMPT)
        terminal.type("SELECT 6 * 7 AS answer;\r")
        terminal.read_until("1 row")
        terminal.read_until(PROMPT)
        terminal.type("\x04")
        assert terminal.wait() == ExitStatus.OK
    assert (orders / ".local/state/caudal/history").stat().st_mode & 0o777 == 0o600
    with caudal_in_terminal("shell", home=orders) as terminal:
        terminal.read_until(PROMPT)
        terminal.type("\x1b[A")  # up
        terminal.read_until("SELECT 6 * 7 AS answer;")
        terminal.type("\r")
        assert "42" in terminal.read_until("1 row")
        terminal.type("not finished\x03")  # what is typed is discarded
        terminal.type(".quit\r")
        assert terminal.wait() == ExitStatus.OK


def test_tables_of_an_application_are_completed(orders: Path) -> None:
    with caudal_in_terminal("shell", "movies", home=orders) as terminal:
        terminal.read_until(PROMPT)
        terminal.type(".schema rat\t")
        terminal.read_until("ings")
        terminal.type("\r")
        terminal.read_until("DECIMAL(18,9)")


def test_statements_from_a_pipe(orders: Path) -> None:
    done = piped(
        "SELECT count(*) AS n -- all; of them\nFROM orders;\n"
        ".output big.json\nSELECT name FROM orders\nWHERE name <> ';'\nORDER BY 1 LIMIT 1;\n"
        ".output\n"
        ".mode jsonl\nSELECT name FROM 'orders.csv' LIMIT 1",
        "orders.csv", "--format", "csv",
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (ExitStatus.OK, 'n\n2\n{"name":"Ana"}\n')
    assert (orders / "big.json").read_text() == "name\nAna\n", ".mode wins over the ending"
    assert done.stderr.count("read orders") == 1, "as a table and as a file by name"


def test_the_ending_of_the_output_is_its_format(orders: Path) -> None:
    done = piped(".output x.json\nSELECT 1 AS a;\n.output y.parquet\nSELECT 1 AS a;SELECT 2;")
    assert done.returncode == ExitStatus.USAGE
    assert json.loads((orders / "x.json").read_text()) == [{"a": 1}]
    assert "y.parquet holds an answer already: give another .output FILE" in done.stderr
    assert sorted(path.name for path in orders.iterdir()) == ["orders.csv", "x.json"]


@pytest.mark.parametrize(
    ("script", "status", "message"),
    [
        ("SELECT nope FROM orders; SELECT 1 AS later;", ExitStatus.USAGE, '"nope"'),
        (".nope\nSELECT 1 AS later;", ExitStatus.USAGE, "no command .nope: .help lists"),
        (".mode nope\nSELECT 1 AS later;", ExitStatus.USAGE, "no format 'nope': choose one of"),
        (".schema nope\n", ExitStatus.USAGE, "no table 'nope': the tables are: orders"),
        (".timing maybe\n", ExitStatus.USAGE, "write .timing on, or .timing off"),
        (".explain\n", ExitStatus.USAGE, "write .explain SELECT …"),
        (".mode parquet\nSELECT 1;", ExitStatus.USAGE, "give .output FILE first"),
        ("SELECT CAST('x' || id AS INTEGER) FROM orders; SELECT 1 AS later;",
         ExitStatus.QUERY, "Could not convert"),
        ("DROP TABLE orders;", ExitStatus.USAGE, "one SELECT"),
        (".output orders.csv/x.csv\n", ExitStatus.OUTPUT, "cannot write orders.csv/x.csv"),
    ],
)  # fmt: skip
def test_a_mistake_ends_a_script(
    orders: Path, script: str, status: ExitStatus, message: str
) -> None:
    done = piped(script, "orders.csv")
    assert done.returncode == status
    assert message in done.stderr
    assert "later" not in done.stdout


def test_what_the_commands_show(orders: Path) -> None:
    done = piped(".tables\n.schema orders\n.explain SELECT id FROM orders\n.mode\n.help\n.exit\nx;",
                 "orders.csv")  # fmt: skip
    assert done.returncode == ExitStatus.OK
    assert done.stdout.startswith("orders  orders.csv\norders\n  id      BIGINT\n  name    VARCHAR")
    for part in ("read orders from orders.csv", "\ntable\n", ".timing [on|off]"):
        assert part in done.stdout


def test_timing_can_be_hidden(orders: Path) -> None:
    assert "1 row, 0." in piped("SELECT 1").stdout
    assert "1 row\n" in piped(".timing off\nSELECT 1").stdout
