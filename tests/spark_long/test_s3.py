"""Executors read ranges of objects and files of a dataset from S3, with a real server."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from caudal.store import S3Store
from tests.harness.seaweed import S3Server
from tests.harness.seaweed import s3_server as s3_server

pytest.importorskip("pyspark", reason="the extra caudal[spark] is not installed")
ROOT = Path(__file__).parents[2]

DRIVER = """
import sys
import caudal
from pathlib import Path
from caudal.application import find_application
from caudal.datasets.shelf import open_shelf
from caudal.files.sources import Sources
from caudal.local.engines import ask_with, run_with
from caudal.run_options import Engine, RunOptions, SparkOptions

bucket, data = sys.argv[1:]
app, local = find_application("books"), Sources(Path(data))
expected = run_with(Engine.EMBEDDED, app, local)
options = RunOptions(spark=SparkOptions(master="local[2]"), batch_bytes=1 << 20)
root = f"s3://{bucket}/spark"
there = {table.name: [f"{root}/{name}" for name in table.files] for table in app.tables}
found = run_with(Engine.SPARK, app, Sources(Path(), there), options=options)
assert found.rejects.counts() == expected.rejects.counts()
print(*[name for name in expected if found[name].table.equals(expected[name].table)], flush=True)
caudal.load("books", data, to=f"s3://{bucket}/spark-shelf")
found = ask_with(Engine.SPARK, app, open_shelf(f"s3://{bucket}/spark-shelf"), options=options)
print(*[name for name in expected if found[name].table.equals(expected[name].table)], flush=True)
"""


def test_files_and_a_dataset_on_s3(s3_server: S3Server, generated: Path) -> None:
    store = S3Store(s3_server.bucket, "spark", s3_server.settings)
    for file in (generated / "books").iterdir():
        store.create(file.name, file)
    environment = {
        **os.environ,
        "AWS_ENDPOINT_URL": s3_server.endpoint,
        "AWS_REGION": s3_server.region,
        "AWS_ACCESS_KEY_ID": s3_server.access_key,
        "AWS_SECRET_ACCESS_KEY": s3_server.secret_key,
        "PYSPARK_PYTHON": sys.executable,
    }
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, s3_server.bucket, str(generated / "books")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    names = "q1 q2 q3 q4 q5"
    assert done.stdout.splitlines() == [names, names], done.stderr[-3000:]
