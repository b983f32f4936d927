"""The command line on Spark: what a user types, in a process of its own, with its own session."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra caudal[spark] is not installed")

QUESTION = "SELECT categories, count(*) AS books FROM books GROUP BY ALL ORDER BY ALL"
ON_SPARK = ("--engine", "spark", "--master", "local[1]")


def asked(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "caudal", "sql", *arguments, "--quiet"]
    env = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


def rows(found: "subprocess.CompletedProcess[str]") -> str:
    """Return what the command prints, without the seconds that it took."""
    assert found.returncode == 0, found.stderr
    return re.sub(r"[0-9.]+ s$", "", found.stdout, flags=re.MULTILINE)


def test_the_command_prints_the_rows_of_the_embedded_engine(
    generated: Path, session: object
) -> None:
    """And no more: Spark's own greetings do not reach the terminal."""
    question = "books", QUESTION, "--data", str(generated / "books")
    embedded, found = asked(*question), asked(*question, *ON_SPARK)
    assert rows(found) == rows(embedded)
    assert found.stderr == embedded.stderr


def test_without_java_the_command_says_what_to_install(generated: Path, tmp_path: Path) -> None:
    for program in ("bash", "dirname"):
        (tmp_path / program).symlink_to(str(shutil.which(program)))
    question = "books", QUESTION, "--data", str(generated / "books"), *ON_SPARK
    found = asked(*question, PATH=str(tmp_path), JAVA_HOME="")
    assert found.returncode == 14
    assert found.stderr == (
        "caudal: cannot start Spark: it needs Java: install it (default-jre-headless), "
        "or set JAVA_HOME\n"
    )
