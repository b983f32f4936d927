"""`s3://bucket/key` as an input of `sql`, `shell`, `new` and `run`, on a real S3 server."""

import contextlib
import gzip
import io
import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.harness.seaweed import S3Server
from tests.harness.seaweed import s3_server as s3_server

from caudal.cli.main import main
from caudal.errors import AlreadyExistsError
from caudal.store import S3Store

ONE = b"id,name,price\n1,Ana,9.50\n2,Bea,20.00\n"
TWO = b"id,name,price\n3,Cid,1.25\nx,Dan,2\n"


@pytest.fixture
def place(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A prefix with files of several forms. Commands find the server by their environment."""
    store = S3Store(s3_server.bucket, "inputs", s3_server.settings)
    packed = io.BytesIO()
    pq.write_table(pa.table({"id": [7, 8], "name": ["Eva", "Fay"]}), packed)
    for key, data in {
        "sales/a.csv": ONE,
        "sales/b.csv": TWO,
        "sales/deep/c.csv.gz": gzip.compress(ONE.replace(b",", b";").replace(b".", b",")),
        "people.parquet": packed.getvalue(),
    }.items():
        with contextlib.suppress(AlreadyExistsError):  # of an earlier test
            store.create(key, data)
    for name, value in {
        "AWS_ENDPOINT_URL": s3_server.endpoint,
        "AWS_REGION": s3_server.region,
        "AWS_ACCESS_KEY_ID": s3_server.access_key,
        "AWS_SECRET_ACCESS_KEY": s3_server.secret_key,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return f"s3://{s3_server.bucket}/inputs"


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    capsys.readouterr()
    assert main([*arguments, "--format", "json"]) == 0
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("sales/a.csv", {"rows": 2, "price": 29.5}),
        ("sales/*.csv", {"rows": 4, "price": 32.75}),
        ("sales/[b-z].csv", {"rows": 2, "price": 3.25}),
        ("sales/deep/c.csv.gz", {"rows": 2, "price": 29.5}),
    ],
)
def test_sql_reads_objects_and_globs(
    place: str, key: str, answer: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    select = f"SELECT count(*) AS rows, sum(price)::DOUBLE AS price FROM '{place}/{key}'"
    assert rows(capsys, "sql", select) == [answer]


def test_sql_reads_parquet_and_joins_it(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    select = f"""SELECT p.name, c.name AS other FROM '{place}/people.parquet' AS p
        JOIN '{place}/sales/a.csv' AS c ON p.id = c.id + 6 ORDER BY 1"""
    assert rows(capsys, "sql", select) == [
        {"name": "Eva", "other": "Ana"},
        {"name": "Fay", "other": "Bea"},
    ]


@pytest.mark.parametrize("key", ["missing.csv", "sales/*.tsv"])
def test_an_object_that_is_not_there(
    place: str, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", f"SELECT * FROM '{place}/{key}'"]) != 0
    assert f"no object {place}/{key}: name an existing one" in capsys.readouterr().err


def test_the_prompt_reads_objects(
    place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = f"SELECT max(name) AS last FROM '{place}/sales/*.csv';\n".encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(asked)))
    assert main(["shell"]) == 0
    assert "Dan" in capsys.readouterr().out


def test_new_and_run_read_objects(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "shop", f"{place}/sales/a.csv"]) == 0
    told = capsys.readouterr().out
    assert told == f"now try: caudal run ./shop --file a={place}/sales/a.csv\n"
    assert main(["test", "./shop"]) == 0  # its case holds rows of the object
    run = ["run", "./shop", "-q", "a_rows", "--format", "csv", "--file"]
    capsys.readouterr()
    assert main([*run, f"a={place}/sales/a.csv"]) == 0
    assert capsys.readouterr().out == "row_count\n2\n"
    assert main([*run, f"a={place}/sales/*.csv"]) == 0
    told_of_two = capsys.readouterr()
    assert told_of_two.out == "row_count\n3\n"
    assert "id is not an integer" in told_of_two.err


def test_new_takes_one_object_for_each_table(
    place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", "shop", f"{place}/sales/*.csv"]) != 0
    assert "names 2 objects: name one" in capsys.readouterr().err
