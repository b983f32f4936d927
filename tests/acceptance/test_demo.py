"""The cluster's act of `make demo` on machines that lack RabbitMQ."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.services.rabbit import PROGRAM

SCRIPT = Path(__file__).parents[2] / "deploy" / "demo.sh"


def test_the_demo_ends_well_without_rabbitmq(tmp_path: Path) -> None:
    command = ["sh", str(SCRIPT), "caudal-must-not-be-called", str(tmp_path)]
    if PROGRAM.exists():
        command = hidden(PROGRAM.parents[1], command)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "apt-get install rabbitmq-server" in done.stdout


def hidden(folder: Path, command: list[str]) -> list[str]:
    """The command, run where `folder` is empty. Needs root: it mounts in a namespace of its own."""
    if os.geteuid() != 0:
        pytest.skip(f"only root can hide {folder}")
    script = f'mount -t tmpfs none "{folder}" && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", script, "sh", *command]
