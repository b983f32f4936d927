"""Spark's own Connect server, in a process of its own: the same answers, and Ctrl-C."""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from caudal.application import find_application
from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.run_options import Engine, RunOptions, Silent, SparkInputs, SparkOptions
from caudal.spark import bootstrap, frames
from tests.harness.waiting import GUARD_SECONDS, until
from tests.spark.test_answers import assert_identical

pyspark = pytest.importorskip("pyspark", reason="the extra caudal[spark] is not installed")
connect = pytest.importorskip("pyspark.sql.connect.session", reason="pyspark[connect] is missing")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@pytest.fixture(scope="module")
def remote(port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    given = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    start = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    said = tmp_path_factory.mktemp("connect") / "said"
    with said.open("w") as log:
        server = subprocess.Popen(
            [start, "--master", "local[2]", "--class", SERVER, *given, "spark-internal"],
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
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


@pytest.fixture
def connected(remote: str) -> Iterator[Any]:
    made = connect.SparkSession.builder.remote(remote).create()
    yield made
    made.stop()


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
