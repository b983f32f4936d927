"""Ctrl-C: a real signal to a real process cancels the job that it started in Spark."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.harness.waiting import GUARD_SECONDS

pytest.importorskip("pyspark", reason="the extra caudal[spark] is not installed")

DRIVER = """
import sys
from pyspark.sql import SparkSession
import caudal
from caudal.spark import bootstrap

data, marker = sys.argv[1:]
session = (
    SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.log.level", "OFF").getOrCreate()
)

def endless(*_):
    def run(batches):
        import os, signal
        from pathlib import Path
        Path(marker + ".new").write_text(str(os.getpid()))
        Path(marker + ".new").rename(marker)
        signal.pause()
        yield from batches
    return run

bootstrap.task_function = endless
try:
    caudal.run("movies", data, engine="spark", spark=session)
except KeyboardInterrupt:
    active = session.sparkContext.statusTracker().getActiveJobsIds()
    print("interrupted", len(active), session.range(3).count(), flush=True)
session.stop()
"""


def test_a_signal_cancels_the_job(generated: Path, tmp_path: Path) -> None:
    marker = tmp_path / "running"
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(generated / "movies"), str(marker)],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + GUARD_SECONDS
        while process.poll() is None and not marker.exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        told, errors = process.communicate()
    finally:
        process.kill()
        process.wait()
    assert told.split() == ["interrupted", "0", "3"], errors[-3000:]
    assert "Traceback" not in errors
    assert "ERROR:root" not in errors
    with pytest.raises(ProcessLookupError):  # the endless task is gone with its process
        os.kill(int(marker.read_text()), 0)
