"""The command line on Spark: what a user types, in a process of its own, with its own session."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra caudal[spark] is not installed")


def rows(*arguments: str) -> str:
    """Return what the command prints, without the seconds that it took."""
    command = [sys.executable, "-m", "caudal", "sql", *arguments, "--quiet"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.sub(r"[0-9.]+ s$", "", said, flags=re.MULTILINE)


def test_the_command_prints_the_rows_of_the_embedded_engine(
    generated: Path, session: object
) -> None:
    question = "SELECT categories, count(*) AS books FROM books GROUP BY ALL ORDER BY ALL"
    asked = "books", question, "--data", str(generated / "books")
    assert rows(*asked, "--engine", "spark", "--master", "local[1]") == rows(*asked)
