"""A standalone cluster of two workers: an executor is killed, attempts are speculative, code is
shipped. The driver is a process of its own."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pyspark = pytest.importorskip("pyspark", reason="the extra caudal[spark] is not installed")
ROOT = Path(__file__).parents[2]

DRIVER = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from caudal.application import find_application
from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.run_options import Engine, RunOptions, SparkInputs, SparkOptions
from caudal.spark import bootstrap, frames
from tests.spark_long.killing import killing

master, data, task, marker, ship = sys.argv[1:]
session = (
    SparkSession.builder.master(master)
    .config("spark.executor.memory", "512m")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.ui.enabled", "false")
    .config("spark.speculation", "true")
    .config("spark.speculation.multiplier", "1.1")
    .config("spark.speculation.quantile", "0.1")
    .config("spark.log.level", "OFF")
    .getOrCreate()
)
frames.MOST_BYTES = -1  # folds run on executors, however small
if task:
    bootstrap.task_function = killing(task, Path(marker), above=2)
app, sources = find_application("books"), Sources(Path(data) / "books")
expected = run_with(Engine.EMBEDDED, app, sources)
spark = SparkOptions(session, inputs=SparkInputs.SHARED, ship=bool(ship))
options = RunOptions(spark=spark, batch_bytes=1 << 20)
found = run_with(Engine.SPARK, app, sources, options=options)
assert found.rejects.counts() == expected.rejects.counts()
print(*[name for name in expected if found[name].table.equals(expected[name].table)], flush=True)
session.stop()
"""


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java: apt-get install default-jre-headless")
    with contextlib.closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    url, folder = f"spark://127.0.0.1:{port}", tmp_path_factory.mktemp("standalone")
    start = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    here, deploy = ["--host", "127.0.0.1", "--webui-port", "0"], "org.apache.spark.deploy"
    commands = [[start, f"{deploy}.master.Master", *here, "--port", str(port)]]
    commands += [
        [
            start,
            f"{deploy}.worker.Worker",
            *here,
            "-c",
            "1",
            "-m",
            "1g",
            "-d",
            str(folder / name),
            url,
        ]
        for name in ("one", "two")
    ]
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    quiet = subprocess.DEVNULL
    running = [subprocess.Popen(one, env=env, stdout=quiet, stderr=quiet) for one in commands]
    yield url
    for process in reversed(running):
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("task", "ship"),
    [("map_rows", ""), ("fold_rows", ""), ("", "ship")],
    ids=["map", "fold", "ship"],
)
def test_a_lost_executor_changes_nothing(
    task: str, ship: str, master: str, generated: Path, tmp_path: Path
) -> None:
    marker = tmp_path / "killed"
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, master, str(generated), task, str(marker), ship],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["q1", "q2", "q3", "q4", "q5"], done.stderr[-3000:]
    assert marker.exists() is bool(task)
