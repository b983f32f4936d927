"""Caudal's Spark engine, in a session of local mode with two threads."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from pyspark.sql import SparkSession

import caudal
from bench.answers import Answers


@contextlib.contextmanager
def opened() -> Iterator[Callable[[Path], Answers]]:
    """A session; gives what answers all queries over a folder."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("books")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")

    def answer(folder: Path) -> Answers:
        found = caudal.run("books", folder, engine="spark", spark=session, progress=False)
        return {name: found[name].rows() for name in found}

    try:
        yield answer
    finally:
        session.stop()
