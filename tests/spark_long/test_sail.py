"""The same answers on Sail, a server of Spark Connect without Java, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pysail", reason="pysail is not installed")

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / ".venv-spark" / "sail"  # a PySpark as old as Sail

RUN = """
import sys
from pathlib import Path
from pysail.spark import SparkConnectServer
from caudal.application import find_application
from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.run_options import Engine, RunOptions, SparkInputs, SparkOptions
from caudal.spark import frames

server = SparkConnectServer("127.0.0.1", 0)
server.start(background=True)
remote = f"sc://127.0.0.1:{server.listening_address[1]}"
for name, inputs in (("movies", SparkInputs.SENT), ("books", SparkInputs.SHARED)):
    frames.MOST_BYTES = -1 if name == "books" else frames.MOST_BYTES  # folds on the server too
    app, sources = find_application(name), Sources(Path(sys.argv[1]) / name)
    expected = run_with(Engine.EMBEDDED, app, sources)
    options = RunOptions(spark=SparkOptions(remote=remote, inputs=inputs), partitions=3)
    found = run_with(Engine.SPARK, app, sources, options=options)
    same = [query for query in expected if found[query].table.equals(expected[query].table)]
    assert found.rejects.counts() == expected.rejects.counts()
    print(name, *same, flush=True)
"""


def test_shipped_queries_on_sail(generated: Path) -> None:
    if not CLIENT.is_dir():
        pytest.skip("the client for Sail is not installed")
    paths = os.pathsep.join([str(CLIENT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(generated)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    names = " ".join(f"q{n}" for n in range(1, 6))
    assert done.stdout.splitlines() == [f"movies {names}", f"books {names}"], done.stderr[-3000:]
