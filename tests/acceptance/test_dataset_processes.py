"""Real loader processes, killed with SIGKILL: what was reported is there, and nothing twice."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from caudal.datasets.shelf import open_shelf
from caudal.generate import generate
from caudal.store import DirectoryStore
from tests.harness.seaweed import S3Server
from tests.harness.seaweed import s3_server as s3_server
from tests.harness.shelves import ask_sales, load_files, sales_loader, write_sales, write_shops

ROOT = Path(__file__).parents[2]
CAUDAL = [sys.executable, "-m", "caudal"]


@pytest.mark.parametrize("at", [2, 9, 14, 19, 24])
def test_a_load_killed_with_sigkill_is_finished_by_the_next(at: int, tmp_path: Path) -> None:
    write_shops(tmp_path)
    for number in range(2):
        write_sales(tmp_path, f"s{number}.csv", range(10 * number, 10 * number + 5))
    place = tmp_path / "shelf"
    victim = [sys.executable, "-m", "tests.harness.dataset_victim", str(at), str(place)]
    done = subprocess.run(
        [*victim, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    with sales_loader(DirectoryStore(place), str(place)) as loader:
        load_files(loader, tmp_path, sales=["s0.csv", "s1.csv"], shops=["shops.csv"])
    assert ask_sales(open_shelf(str(place)))[0]["sales"] == 10


def test_a_stream_whose_loader_is_killed_loses_and_doubles_nothing(tmp_path: Path) -> None:
    generate("movies", scale=0.001, seed=3, out=tmp_path)
    text = (tmp_path / "ratings.csv").read_bytes()
    half = text.index(b"\n", len(text) // 2) + 1
    place = tmp_path / "shelf"
    command = [*CAUDAL, "load", "movies", "--file", "ratings=-", "--every", "0.1s"]
    loader = subprocess.Popen(
        [*command, "--to", str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert loader.stdin is not None
    assert loader.stdout is not None
    loader.stdin.write(text[:half])
    loader.stdin.flush()
    assert loader.stdout.readline().startswith(b"version 1: ")  # from now on it is loaded
    loader.kill()
    loader.communicate()
    again = subprocess.run(
        [*command, "--to", str(place)], input=text, capture_output=True, check=True
    )
    assert b"of standard input skipped: version 1 loaded them" in again.stdout
    whole = subprocess.run(
        [*CAUDAL, "load", "movies", "--file", f"ratings={tmp_path / 'ratings.csv'}",
         "--to", str(tmp_path / "whole")],
        check=True, capture_output=True,
    )  # fmt: skip
    assert whole.stdout
    assert rows(place) == rows(tmp_path / "whole")


def rows(place: Path) -> bytes:
    sql = "SELECT * FROM ratings"
    asked = [*CAUDAL, "sql", "movies", sql, "--from", str(place), "--format", "csv"]
    return subprocess.run(asked, check=True, capture_output=True).stdout


@pytest.mark.long
def test_a_dataset_on_s3(s3_server: S3Server, tmp_path: Path) -> None:
    generate("movies", scale=0.001, seed=3, out=tmp_path)
    environment = {
        **os.environ,
        "AWS_ENDPOINT_URL": s3_server.endpoint,
        "AWS_REGION": s3_server.region,
        "AWS_ACCESS_KEY_ID": s3_server.access_key,
        "AWS_SECRET_ACCESS_KEY": s3_server.secret_key,
    }
    place = f"s3://{s3_server.bucket}/shelves/movies"

    def caudal(*arguments: str) -> str:
        done = subprocess.run(
            [*CAUDAL, *arguments], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    expected = caudal("run", "movies", "--data", str(tmp_path), "--format", "json")
    assert "version 1:" in caudal("load", "movies", "--data", str(tmp_path), "--to", place)
    assert caudal("run", "movies", "--from", place, "--format", "json") == expected
    assert "nothing new" in caudal("load", "movies", "--data", str(tmp_path), "--to", place)
    assert "load" in caudal("versions", place)
    assert "nothing to delete" in caudal("vacuum", place)
