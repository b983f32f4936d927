"""One session of Spark for all tests: starting it takes most of their time."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from caudal.generate import generate


@pytest.fixture(scope="session")
def java() -> None:
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java: apt-get install default-jre-headless")


@pytest.fixture(scope="session")
def session(java: None) -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql", reason="the extra caudal[spark] is not installed")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    made = (
        sql.SparkSession.builder.master("local[2,4]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.log.level", "OFF")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    yield made
    made.stop()


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    for app in ("movies", "books"):
        generate(app, scale=0.001, seed=5, out=folder / app)
    return folder
