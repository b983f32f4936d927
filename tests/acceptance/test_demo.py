"""The cluster's act of `make demo`, on machines with and without RabbitMQ."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.cluster import free_hundred
from tests.harness.rabbit import PROGRAM, require_rabbit

SCRIPT = Path(__file__).parents[2] / "deploy" / "demo.sh"
CAUDAL = Path(sys.executable).with_name("caudal")


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("books")
    subprocess.run(
        [CAUDAL, "generate", "books", "--scale", "0.002", "--out", folder],
        check=True,
        capture_output=True,
    )
    return folder


def demo(books: Path) -> list[str]:
    return ["sh", str(SCRIPT), str(CAUDAL), str(books), str(free_hundred())]


def shown(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "byte for byte" in done.stdout
    return done.stdout + done.stderr


def test_without_rabbitmq_the_demo_shows_a_cluster_all_the_same(books: Path) -> None:
    command = demo(books)
    if PROGRAM.exists():
        command = hidden(PROGRAM.parents[1], command)
    assert "broker: embedded" in shown(command)


@pytest.mark.long
def test_with_rabbitmq_the_demo_uses_it(books: Path) -> None:
    require_rabbit()
    assert "broker: a private RabbitMQ" in shown(demo(books))


def hidden(folder: Path, command: list[str]) -> list[str]:
    """The command, run where `folder` is empty. Needs root: it mounts in a namespace of its own."""
    if os.geteuid() != 0:
        pytest.skip(f"only root can hide {folder}")
    script = f'mount -t tmpfs none "{folder}" && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", script, "sh", *command]
