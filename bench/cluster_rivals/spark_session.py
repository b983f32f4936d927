"""The session of Spark that Caudal and hand-written PySpark are measured in."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession


@contextlib.contextmanager
def local_session(master: str = "local[2]") -> Iterator[Any]:
    """Local mode with two threads, or another local master; it ends with the block."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master(master)
        .appName("books")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
