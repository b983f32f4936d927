"""Commands as a user types them, each in a process of its own."""

import os
import re
import subprocess
import sys

QUESTION = "SELECT categories, count(*) AS books FROM books GROUP BY ALL ORDER BY ALL"
ON_SPARK = ("--engine", "spark", "--master", "local[1]")


def asked(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "caudal", *arguments, "--quiet"]
    env = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


def rows(found: "subprocess.CompletedProcess[str]") -> str:
    """Return what the command prints, without the seconds that it took."""
    assert found.returncode == 0, found.stderr
    return re.sub(r"[0-9.]+ s$", "", found.stdout, flags=re.MULTILINE)
