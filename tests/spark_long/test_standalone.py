"""A standalone cluster of two workers: an executor is killed, attempts are speculative, code is
shipped. The driver is a process of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark_long.pythons import python_without_caudal
from tests.spark_long.slowing import attempts_of_slow_tasks

pyspark = pytest.importorskip("pyspark", reason="the extra caudal[spark] is not installed")
ROOT = Path(__file__).parents[2]
NAMES = "q1 q2 q3 q4 q5"

DRIVER = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from caudal.application import find_application
from caudal.errors import UsageError
from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.run_options import Engine, RunOptions, SparkInputs, SparkOptions
from caudal.spark import bootstrap, frames
from tests.spark_long.killing import killing
from tests.spark_long.pythons import python_without_caudal
from tests.spark_long.slowing import slowing

master, data, change, place = sys.argv[1:]
session = (
    SparkSession.builder.master(master)
    .config("spark.executor.memory", "512m")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.ui.enabled", "false")
    .config("spark.speculation", "true")
    .config("spark.speculation.multiplier", "1.1")
    .config("spark.speculation.quantile", "0.1")
    .config("spark.speculation.task.duration.threshold", "1s")  # of the only task of a stage
    .config("spark.log.level", "OFF")
    .getOrCreate()
)
frames.MOST_BYTES = -1  # folds run on executors, however small
if change == "slow":
    bootstrap.task_function = slowing(Path(place))
elif change != "ship":
    bootstrap.task_function = killing(change, Path(place), above=2)
app, sources = find_application("books"), Sources(Path(data) / "books")
expected = run_with(Engine.EMBEDDED, app, sources)

def run(ship):
    spark = SparkOptions(session, inputs=SparkInputs.SHARED, ship=ship)
    options = RunOptions(spark=spark, batch_bytes=1 << 20)
    return run_with(Engine.SPARK, app, sources, options=options)

if change == "ship":
    try:
        run(ship=False)
    except UsageError as error:
        print(error)
found = run(ship=change == "ship")
assert found.rejects.counts() == expected.rejects.counts()
print(*[name for name in expected if found[name].table.equals(expected[name].table)], flush=True)
session.stop()
"""


@pytest.fixture(scope="module")
def master(port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    url, folder = f"spark://127.0.0.1:{port}", tmp_path_factory.mktemp("standalone")
    start = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    quick, deploy = ["--webui-port", "0"], "org.apache.spark.deploy"
    here = ["--host", "127.0.0.1", "--port", str(port)]
    commands = [[start, f"{deploy}.master.Master", *quick, *here]]
    worker = [start, f"{deploy}.worker.Worker", *quick, "-c", "1", "-m", "1g"]
    # Two hosts: a speculative attempt runs only on a host that has no other attempt of its task.
    commands += [
        [*worker, "--host", host, "-d", str(folder / host), url]
        for host in ("127.0.0.1", "127.0.0.2")
    ]
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    quiet = subprocess.DEVNULL
    running = [subprocess.Popen(one, env=env, stdout=quiet, stderr=quiet) for one in commands]
    yield url
    for process in reversed(running):
        process.kill()
        process.wait()


def told(master: str, generated: Path, change: str, place: Path, **environment: str) -> list[str]:
    """Return what the driver prints, at last the queries that it answers on the cluster as the
    embedded engine does."""
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    given = [master, str(generated), change, str(place)]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, *given],
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": paths,
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.mark.parametrize("task", ["map_rows", "fold_rows"])
def test_a_lost_executor_changes_nothing(
    task: str, master: str, generated: Path, tmp_path: Path
) -> None:
    marker = tmp_path / "killed"
    assert told(master, generated, task, marker) == [NAMES]
    assert marker.read_text() == "java\n"


def test_a_speculative_attempt_changes_nothing(
    master: str, generated: Path, tmp_path: Path
) -> None:
    assert told(master, generated, "slow", tmp_path) == [NAMES]
    assert attempts_of_slow_tasks(tmp_path) == {"map_rows": 2, "fold_rows": 2}


def test_executors_without_caudal_use_the_shipped_code(
    master: str, generated: Path, tmp_path: Path
) -> None:
    python, cache = python_without_caudal(tmp_path), tmp_path / "cache"
    refused, names = told(
        master,
        generated,
        "ship",
        tmp_path,
        PYSPARK_PYTHON=str(python),
        XDG_CACHE_HOME=str(cache),
    )
    assert refused.startswith("the executors cannot load Caudal (No module named 'caudal')")
    assert names == NAMES
