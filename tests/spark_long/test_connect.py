"""Spark's own Connect server, in a process of its own: the same answers, and Ctrl-C."""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from caudal.application import find_application
from caudal.errors import UsageError
from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.results.answers import Answers
from caudal.run_options import Engine, RunOptions, Silent, SparkInputs, SparkOptions
from caudal.spark import bootstrap, frames, shipping
from caudal.spark.session import SparkSide
from tests.harness.waiting import GUARD_SECONDS, until
from tests.spark.commands import QUESTION, asked, rows
from tests.spark.test_answers import assert_identical
from tests.spark_long.conftest import free_port
from tests.spark_long.pythons import python_without_caudal

pyspark = pytest.importorskip("pyspark", reason="the extra caudal[spark] is not installed")
connect = pytest.importorskip("pyspark.sql.connect.session", reason="pyspark[connect] is missing")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

PARALLELISM = 6
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextlib.contextmanager
def serving(port: int, folder: Path, python: str = sys.executable) -> Iterator[str]:
    """Provide the address of a server whose tasks run in this Python."""
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": str(PARALLELISM),
    }
    given = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    start = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    said = folder / "said"
    with said.open("w") as log:
        server = subprocess.Popen(
            [start, "--master", "local[2]", "--class", SERVER, *given, "spark-internal"],
            env={**os.environ, "PYSPARK_PYTHON": python},
            cwd=said.parent,
            stdout=log,
            stderr=log,
        )

    def listens() -> bool:
        assert server.poll() is None, said.read_text()[-3000:]
        with contextlib.closing(socket.socket()) as tried:
            return tried.connect_ex(("127.0.0.1", port)) == 0

    try:
        until(listens)
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


@pytest.fixture(scope="module")
def remote(port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(port, tmp_path_factory.mktemp("connect")) as address:
        yield address


@contextlib.contextmanager
def connected_to(address: str) -> Iterator[Any]:
    made = connect.SparkSession.builder.remote(address).create()
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def connected(remote: str) -> Iterator[Any]:
    with connected_to(remote) as made:
        yield made


@pytest.mark.parametrize("inputs", [SparkInputs.SENT, SparkInputs.SHARED])
def test_books_on_a_connect_server(
    inputs: SparkInputs, remote: str, generated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "MOST_BYTES", -1)  # folds run on the server, however small
    app, sources = find_application("books"), Sources(generated / "books")
    expected = run_with(Engine.EMBEDDED, app, sources)
    options = RunOptions(spark=SparkOptions(remote=remote, inputs=inputs), batch_bytes=1 << 20)
    found = run_with(Engine.SPARK, app, sources, options=options)
    assert_identical(found, expected)
    assert found.rejects.counts() == expected.rejects.counts()


def test_a_server_tells_how_many_tasks_run_at_a_time(connected: Any) -> None:
    assert SparkSide(connected).parallelism == PARALLELISM


def test_the_command_asks_a_server(remote: str, generated: Path) -> None:
    question = "sql", "books", QUESTION, "--data", str(generated / "books")
    found = asked(*question, "--engine", "spark", "--remote", remote)
    assert rows(found) == rows(asked(*question))


class ImpatientSince(Silent):
    """Presses Ctrl-C as soon as a task has noted its process in this file."""

    def __init__(self, noted: Path) -> None:
        self.noted = noted

    def table(self, name: str, done_bytes: int, total_bytes: int) -> None:
        if self.noted.exists():
            raise KeyboardInterrupt


def endless(noted: Path) -> Any:
    """Return a `task_function` of tasks that do not end by themselves."""
    place, guard = str(noted), GUARD_SECONDS

    def made(*_: Any) -> Any:
        def run(batches: Any) -> Any:
            import os
            import time
            from pathlib import Path

            Path(f"{place}.{os.getpid()}").write_text(str(os.getpid()))
            Path(f"{place}.{os.getpid()}").rename(place)
            time.sleep(guard)
            Path(f"{place}.slept").touch()
            yield from batches

        return run

    return made


def test_an_interrupt_ends_the_operation_on_the_server(
    connected: Any, generated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = tmp_path / "running"
    monkeypatch.setattr(bootstrap, "task_function", endless(noted))
    app, sources = find_application("books"), Sources(generated / "books")
    options = RunOptions(spark=SparkOptions(connected))
    with pytest.raises(KeyboardInterrupt):
        run_with(Engine.SPARK, app, sources, options=options, progress=ImpatientSince(noted))
    task = int(noted.read_text())
    until(lambda: not Path(f"/proc/{task}").exists())
    assert not Path(f"{noted}.slept").exists()
    assert connected.range(3).count() == 3  # the session is left open


def test_executors_of_a_server_without_caudal_use_the_shipped_code(
    java: None, generated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is sent once to a session."""
    monkeypatch.setattr(frames, "MOST_BYTES", -1)
    monkeypatch.setattr(shipping, "_private_folder", lambda: tmp_path)
    app, sources = find_application("books"), Sources(generated / "books")
    expected = run_with(Engine.EMBEDDED, app, sources)
    with contextlib.ExitStack() as stack:
        python = str(python_without_caudal(tmp_path))
        address = stack.enter_context(serving(free_port(), tmp_path, python))
        session = stack.enter_context(connected_to(address))
        monkeypatch.setattr(session, "addArtifacts", sent := Mock(wraps=session.addArtifacts))

        def asked(*, ship: bool) -> Answers:
            spark = SparkOptions(session, inputs=SparkInputs.SENT, ship=ship)
            return run_with(Engine.SPARK, app, sources, options=RunOptions(spark=spark))

        with pytest.raises(UsageError, match=r"cannot load Caudal .*, or add --ship$"):
            asked(ship=False)
        for _ in range(2):
            assert_identical(asked(ship=True), expected)
    assert sent.call_count == 1
