"""Completion of commands by a real bash, and what zsh and fish are answered."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(sys.executable).parent
ENVIRONMENT = {**os.environ, "PATH": f"{FOLDER}:{os.environ['PATH']}"}

BASH = """
source <(caudal completion bash)
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_caudal_completion caudal
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["caudal", "comp"], {"completion", "compact"}),
        (["caudal", "run", "--for"], {"--format"}),
        (["caudal", "run", "books", "--format", "js"], {"json", "jsonl"}),
        (["caudal", "series", "in"], {"ingest"}),
    ],
)
def test_bash_completes(words: list[str], found: set[str]) -> None:
    command = ["bash", "--norc", "-c", BASH, "bash", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=True)
    assert found <= set(done.stdout.split())
    assert done.stderr == ""


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_answered(shell: str) -> None:
    script = [sys.executable, "-m", "caudal", "completion", shell]
    given = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    assert f"_CAUDAL_COMPLETE=complete_{shell}" in given
    asked = {
        "_CAUDAL_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "caudal run --for",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = subprocess.run(
        [FOLDER / "caudal"],
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, **asked},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "--format" in done.stdout
