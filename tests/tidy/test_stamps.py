"""An environment for tests that could not be made is tried again by the next make."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOLD = {
    "spark": "no PySpark here",
    "transformers": "no CPU build of torch here",
    "rabbitmq": "RabbitMQ could not be installed",
    "chromium": "node is not here",
}


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder in which nothing can be installed. Java, RabbitMQ and Chromium may be there."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("requirements.lock", "pyproject.toml", "web/package-lock.json", ".venv/ready"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    for environment in (".venv", ".venv-spark", ".venv-transformers"):
        for name in ("python", "uv"):
            program(tmp_path / environment / "bin" / name, "exit 0")
    for name in ("java", "rabbitmq", "chromium"):
        program(
            tmp_path / "tests" / "harness" / f"install_{name}.sh", f"echo {TOLD.get(name)}; exit 1"
        )
    program(tmp_path / "python", "exit 1")
    return tmp_path


def made(checkout: Path, name: str) -> "subprocess.CompletedProcess[str]":
    command = ["make", "--no-print-directory", f".venv/{name}", f"PYTHON={checkout / 'python'}"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    return subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, check=True
    )


@pytest.mark.parametrize("name", list(TOLD))
def test_what_cannot_be_had_is_said_each_time(name: str, checkout: Path) -> None:
    for _ in range(2):
        assert TOLD[name] in made(checkout, name).stdout
    for file in (checkout / "tests" / "harness").iterdir():
        program(file, "exit 0")
    program(checkout / "python", "exit 0")
    assert made(checkout, name).stdout == ""
    assert "up to date" in made(checkout, name).stdout
