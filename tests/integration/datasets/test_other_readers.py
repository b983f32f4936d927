"""Other readers of Delta tables give the rows and types that Caudal gives, at every version."""

import importlib.util
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import polars
import pyarrow as pa
import pytest

from caudal.datasets.compaction import compact
from caudal.datasets.shelf import Shelf, open_shelf
from caudal.duck.arrow_casts import presented
from caudal.embedded.dataset_ask import ask
from caudal.embedded.dataset_load import open_loader
from caudal.embedded.dataset_sources import file_sources
from caudal.files.sources import Sources
from caudal.model import Application, Query, Table
from caudal.run_options import RunOptions
from caudal.store import DirectoryStore

EVERY_TYPE = """
SELECT
    TRY_CAST(n AS BOOLEAN) AS flag,
    TRY_CAST(n AS TINYINT) AS tiny,
    TRY_CAST(n AS SMALLINT) AS small,
    TRY_CAST(n AS INTEGER) AS medium,
    TRY_CAST(n AS BIGINT) * 1000000007 AS big,
    TRY_CAST(n AS FLOAT) / 3 AS single,
    TRY_CAST(n AS DOUBLE) / 7 AS double,
    TRY_CAST(n AS DECIMAL(9, 2)) AS price,
    TRY_CAST(n AS DECIMAL(38, 6)) AS amount,
    DATE '1999-12-31' + TRY_CAST(n AS INTEGER) AS day,
    TIMESTAMP '2001-02-03 04:05:06.789012' + to_hours(TRY_CAST(n AS INTEGER)) AS moment,
    TIMESTAMPTZ '2001-02-03 04:05:06.789012+00' + to_days(TRY_CAST(n AS INTEGER)) AS instant,
    text,
    encode(text) AS bytes,
    CASE WHEN text IS NOT NULL THEN [text, NULL, n] END AS words,
    [[TRY_CAST(n AS INTEGER)], []] AS nested,
    {'a': TRY_CAST(n AS INTEGER), 'b': [text]} AS pair,
    MAP {'k': TRY_CAST(n AS DOUBLE), n: NULL} AS mapped
FROM (SELECT raw.n AS n, raw.text AS text FROM raw)
"""
APP = Application(
    "types",
    "",
    Path(),
    (Table("every", ("every.csv",), ("n", "text"), EVERY_TYPE, "tables/every.sql"),),
    (Query("all", "", "SELECT * FROM every", "queries/all.sql"),),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with two loads, a compaction and a load: versions 0 to 4."""
    folder = tmp_path_factory.mktemp("other")
    store = DirectoryStore(folder / "shelf", fsync=False)
    with open_loader(APP, "shelf", store, RunOptions(threads=1)) as loader:
        for number in range(3):
            path = folder / f"part{number}.csv"
            lines = [
                "n,text",
                *(f'{number * 10 + n},"ñ {n}, ""x"""' for n in range(5)),
                f"{number},",
            ]
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            loader.load(file_sources(Sources(folder, {"every": [str(path)]}), APP.tables))
            if number == 1:
                compact(store, 0.0)
    return folder / "shelf"


def ours(place: Path, version: int, table: str) -> pa.Table:
    shelf = open_shelf(str(place), version)
    asked = Application("types", "", Path(), APP.tables, (Query("q", "", f"FROM {table}", "q"),))
    return ask(asked, shelf)["q"].table


def plain(rows: pa.Table) -> list[dict[str, Any]]:
    """The rows as Python values; readers of Delta may give them in any order."""
    return sorted(rows.to_pylist(), key=repr)


def assert_agree(found: pa.Table, expected: pa.Table) -> None:
    assert found.column_names == expected.column_names
    for one, other in zip(found.schema, expected.schema, strict=True):
        assert normal(one.type) == normal(other.type), one.name
    assert plain(found) == plain(expected)


def normal(kind: pa.DataType) -> str:
    """A type without what readers are free to choose: widths of offsets, names of items."""
    if pa.types.is_map(kind):
        return f"map<{normal(kind.key_type)}, {normal(kind.item_type)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or "list_view" in str(kind):
        return f"list<{normal(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{one.name}: {normal(one.type)}' for one in kind)}>"
    text = str(kind).replace("large_", "").replace("_view", "")
    return text.replace("Etc/", "")


VERSIONS = range(5)


@pytest.mark.parametrize("table", ["every", "rejects"])
@pytest.mark.parametrize("version", VERSIONS)
def test_deltalake_reads_every_version(place: Path, version: int, table: str) -> None:
    found = deltalake.DeltaTable(place / "tables" / table, version=version)
    assert found.version() == version
    assert_agree(pa.table(found.to_pyarrow_table()), ours(place, version, table))


@pytest.mark.parametrize("version", VERSIONS)
def test_polars_reads_every_version(place: Path, version: int) -> None:
    source = str(place / "tables" / "every")
    found = polars.scan_delta(source, version=version).collect()
    expected = ours(place, version, "every")
    assert found.columns == expected.column_names
    assert found.height == expected.num_rows
    for name in expected.column_names:
        if name == "mapped":  # Polars has no maps: lists of pairs
            continue
        if not expected.num_rows:
            continue
        values = expected[name].to_pylist()
        assert sorted(found[name].to_list(), key=repr) == sorted(values, key=repr), name


@pytest.mark.parametrize("version", VERSIONS)
def test_duckdb_reads_the_files_of_every_version(place: Path, version: int) -> None:
    files = open_shelf(str(place), version).contents.tables["every"]
    paths = [str(place / "tables" / "every" / file.path) for file in files]
    expected = ours(place, version, "every")
    if not paths:
        assert not expected.num_rows
        return
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = presented(connection.sql(f"SELECT * FROM read_parquet({paths})"))
    assert found.equals(expected)


@pytest.mark.parametrize("version", VERSIONS)
def test_statistics_never_hide_a_row(place: Path, version: int) -> None:
    """A filter on any single value finds its rows, although readers skip files by bounds."""
    found = deltalake.DeltaTable(place / "tables" / "every", version=version)
    rows = ours(place, version, "every")
    for name in ("tiny", "big", "double", "price", "amount", "day", "text"):
        for value in {row[name] for row in rows.to_pylist() if row[name] is not None}:
            kept = found.to_pyarrow_table(filters=[(name, "=", value)])
            expected = sum(1 for row in rows.to_pylist() if row[name] == value)
            assert kept.num_rows == expected, (name, value)


def test_the_log_has_the_load_and_its_operations(place: Path) -> None:
    history = deltalake.DeltaTable(place / "tables" / "every").history()
    operations = [one["operation"] for one in sorted(history, key=lambda one: one["version"])]
    assert operations == ["CREATE TABLE", "WRITE", "WRITE", "OPTIMIZE", "WRITE"]
    load = open_shelf(str(place)).contents.history[1].load
    table = deltalake.DeltaTable(place / "tables" / "every")
    assert table.transaction_version(load) == 1


@pytest.mark.skipif(importlib.util.find_spec("delta") is None, reason="no PySpark with Delta here")
def test_pyspark_reads_every_version(place: Path) -> None:
    delta, pyspark = importlib.import_module("delta"), importlib.import_module("pyspark.sql")
    builder = (
        pyspark.SparkSession.builder.master("local[1]")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
    )
    spark = delta.configure_spark_with_delta_pip(builder).getOrCreate()
    try:
        for version in VERSIONS:
            read = spark.read.format("delta").option("versionAsOf", version)
            found = read.load(str(place / "tables" / "every")).toArrow()
            assert_agree(found, ours(place, version, "every"))
    finally:
        spark.stop()


def test_a_shelf_knows_its_columns(place: Path) -> None:
    shelf: Shelf = open_shelf(str(place))
    assert shelf.contents.columns["every"]["amount"] == "DECIMAL(38,6)"
