"""A real cluster with a tiny transformers model in cluster.toml; run by `make transformers`."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from caudal.cluster.write_config import write_settings
from tests.acceptance.cluster import CAUDAL, RealCluster, free_hundred
from tests.harness.tiny_model import STARS, build_model

pytest.importorskip("torch", reason="the extra caudal[transformers] is not installed")
pytest.importorskip("transformers", reason="the extra caudal[transformers] is not installed")

WORDS = ("good", "bad", "films", "a very good film", "very bad", "unknown words", "")
APP = """\
title = "Reviews"
[[tables]]
name = "reviews"
files = ["reviews.csv"]
columns = ["id", "text"]
"""
TABLE = "SELECT CAST(id AS INTEGER) AS id, sentiment(text) AS polarity, NULL AS reject FROM raw"
SQL = {
    "tables/reviews": TABLE,
    "queries/each": "SELECT id, polarity FROM reviews ORDER BY id",
    "queries/means": "SELECT id % 7 AS k, avg(polarity) AS p FROM reviews GROUP BY ALL ORDER BY 1",
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"transformers:{build_model(tmp_path_factory.mktemp('model'), STARS)}"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("app")
    (folder / "app.toml").write_text(APP)
    for name, sql in SQL.items():
        (folder / f"{name}.sql").parent.mkdir(exist_ok=True)
        (folder / f"{name}.sql").write_text(sql)
    lines = [f"{number},{WORDS[number % len(WORDS)]}" for number in range(4_000)]
    (folder / "reviews.csv").write_text("\n".join(["id,text", *lines, ""]))
    return folder


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, model: str) -> Iterator[RealCluster]:
    folder = tmp_path_factory.mktemp("cluster")
    real = RealCluster(folder, free_hundred())
    write_settings(folder, broker="embedded", medics=1, gateways=1, workers=2, port=real.port)
    file = folder / "cluster.toml"
    file.write_text(file.read_text().replace("sentiment = []", f'sentiment = ["{model}"]'))
    try:
        real.caudal("up")
        yield real
    finally:
        real.caudal("down", "--purge", check=False)


def answers(command: list[str]) -> Any:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def near(some: Any, others: Any) -> bool:
    """The same rows; batches decide the last bits of a score (transformers_model.py)."""
    assert {name: len(rows) for name, rows in some.items()} == {"each": 4_000, "means": 7}
    return all(
        one == pytest.approx(other, abs=1e-9)
        for name, rows in some.items()
        for one, other in zip(rows, others[name], strict=True)
    )


def test_the_cluster_scores_as_the_embedded_engine_does(
    cluster: RealCluster, app: Path, model: str
) -> None:
    more = ("--sentiment", model)
    told = answers(cluster.submit(str(app), app, *more, "--batch-size", "16KiB"))
    local = [*CAUDAL, "run", str(app), "--data", str(app), "--format", "json"]
    assert near(told, answers([*local, *more]))
    assert not near(told, answers(local))


def test_a_model_that_the_file_does_not_name_is_refused(cluster: RealCluster, app: Path) -> None:
    done = subprocess.run(
        cluster.submit(str(app), app, "--sentiment", "transformers:/etc"),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "is not offered here; offered: lexicon, transformers:" in done.stderr
