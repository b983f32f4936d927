"""Spark reads every table at every version, types included (`make readers`).

PySpark needs Delta's jars, which no package of Python brings. So it reads the Parquet files that
the Delta log names at a version, with the schema of the log, which is Spark's own form of a schema.
Sail, an engine that speaks Spark's protocol, reads the Delta table itself.
"""

import importlib.util
import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from tests.integration.datasets.test_other_readers import VERSIONS, assert_agree, ours
from tests.integration.datasets.test_other_readers import place as place

pytestmark = pytest.mark.filterwarnings("ignore")  # of PySpark, about newer libraries
TABLES = ("every", "rejects")


def is_there(*names: str) -> bool:
    return all(importlib.util.find_spec(name) is not None for name in names)


@pytest.fixture(scope="module")
def pyspark() -> Iterator[Any]:
    if not is_there("pyspark", "py4j"):
        pytest.skip("PySpark is not installed: `make readers` tests with it")
    sql = importlib.import_module("pyspark.sql")
    session = (
        sql.SparkSession.builder.master("local[1]")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="module")
def sail() -> Iterator[Any]:
    if not is_there("pysail", "pyspark", "grpc"):
        pytest.skip("Sail is not installed: `make readers` tests with it")
    if version("pysail") < "0.8" and importlib.import_module("pyspark").__version__ >= "4.3":
        pytest.skip("this Sail takes older clients of Spark: `make readers` tests with one")
    spark = importlib.import_module("pysail.spark")
    sql = importlib.import_module("pyspark.sql.connect.session")
    server = spark.SparkConnectServer("127.0.0.1", 0)
    server.start()
    host, port = server.listening_address
    session = sql.SparkSession.builder.remote(f"sc://{host}:{port}").getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    yield session
    session.stop()
    server.stop()


def schema_of(place: Path, table: str) -> Any:
    """The schema in the Delta log, read by Spark."""
    types = importlib.import_module("pyspark.sql.types")
    log = place / "tables" / table / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    text = next(one["metaData"]["schemaString"] for one in actions if "metaData" in one)
    return types.StructType.fromJson(json.loads(text))


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("version", VERSIONS)
def test_pyspark_reads_the_files_of_every_version(
    pyspark: Any, place: Path, version: int, table: str
) -> None:
    expected = ours(place, version, table)
    delta = deltalake.DeltaTable(place / "tables" / table, version=version)
    files = [path.removeprefix("file://") for path in delta.file_uris()]
    schema = schema_of(place, table)
    assert [field.name for field in schema.fields] == expected.column_names
    read = pyspark.read.schema(schema).parquet(*files) if files else None
    found = pyspark.createDataFrame([], schema) if read is None else read
    assert found.schema == schema
    if files:
        inferred = pyspark.read.parquet(*files).schema
        assert inferred.simpleString() == schema.simpleString(), "the types in the files themselves"
    assert_agree(found.toArrow(), expected)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("version", VERSIONS)
def test_sail_reads_every_version(sail: Any, place: Path, version: int, table: str) -> None:
    read = sail.read.format("delta").option("versionAsOf", version)
    found: pa.Table = read.load(str(place / "tables" / table)).toArrow()
    assert_agree(found, ours(place, version, table))
