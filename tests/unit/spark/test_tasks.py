"""Tasks of Spark without Spark: rows in, rows out, errors as rows."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from caudal.application import find_application
from caudal.duck.sandbox import Register, Sandbox, SandboxLimits, Types
from caudal.files.inputs import InputFile
from caudal.files.places import LocalPlace
from caudal.files.sources import Sources
from caudal.formats import job as job_format
from caudal.kernels.sentiment import folder_version
from caudal.kernels.sentiment.column import Scores
from caudal.local.job import LocalRequest
from caudal.run_options import RunOptions
from caudal.spark import engine, tasks
from caudal.spark.engine import SparkJob
from caudal.spark.inputs import cut_waves
from caudal.spark.rows import ERROR, FOR_DRIVER
from caudal.spark.session import SparkSide
from caudal.spark.tasks import Work, map_rows

RATINGS = "userId,movieId,rating,timestamp\n1,862,4.5,1\n2,862,x,1\n"


@pytest.fixture
def job(tmp_path: Path) -> SparkJob:
    request = LocalRequest(find_application("movies"), Sources(tmp_path))
    return SparkJob(SparkSide(None), request, tmp_path)


def rows_of(work: Work, numbers: list[int]) -> list[dict[str, object]]:
    def given() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": pa.array(numbers, pa.int64())})

    found = pa.Table.from_batches(map_rows(msgspec.msgpack.encode(work), given()))
    rows: list[dict[str, object]] = found.to_pylist()
    return rows


def head_work(job: SparkJob, path: Path) -> Work:
    file = InputFile(LocalPlace(path))
    one = job.job_run.split.table("ratings")
    (wave,) = cut_waves(one, [file], 1 << 20, frozenset({file.name}), [])
    return msgspec.structs.replace(
        job.work, table="ratings", heads=wave.batches, paths={file.name: str(path)}
    )


def test_a_task_repeated_gives_the_same_rows(job: SparkJob, tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text(RATINGS)
    work = head_work(job, path)
    once, twice = rows_of(work, [0]), rows_of(work, [0])
    assert once == twice
    assert once[0]["stage"] == "ratings"
    assert once[0]["slice"] == FOR_DRIVER
    assert len(once) > 1
    assert job_format.decode(work.job, "job").tables == job.job_run.job.tables


def test_other_bytes_than_the_driver_saw_are_an_error_for_the_driver(
    job: SparkJob, tmp_path: Path
) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text(RATINGS)
    work = head_work(job, path)
    path.write_text(RATINGS.replace("4.5", "5.5"))
    (row,) = rows_of(work, [0])
    assert row["stage"] == ERROR
    assert b"other bytes than the driver" in row["payload"]  # type: ignore[operator]


def test_steps_may_take_any_time(job: SparkJob, tmp_path: Path) -> None:
    """As in the embedded engine."""
    opened: list[SandboxLimits] = []

    def noted(limits: SandboxLimits, register: Register, types: Types) -> Sandbox:
        opened.append(limits)
        return Sandbox(limits, register, types)

    path = tmp_path / "ratings.csv"
    path.write_text(RATINGS)
    tasks._KEPT.clear()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tasks, "Sandbox", noted)
        assert ERROR not in {row["stage"] for row in rows_of(head_work(job, path), [0])}
    assert {limits.seconds for limits in opened} == {math.inf}


@dataclass(frozen=True)
class Model:
    """A model of a folder, without what it is computed with."""

    version: str
    name: str = "transformers:m"

    def score(self, texts: pa.Array) -> Scores:
        return np.ones(len(texts))


def test_another_model_of_an_executor_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ratings.csv").write_text(RATINGS)
    (tmp_path / "config.json").write_text("{}")
    spec, same = f"transformers:{tmp_path}", folder_version(f"transformers:{tmp_path}")
    loaded = [Model("planned"), Model("other"), Model(same)]
    for module in ("worker.compute", "spark.tasks"):
        monkeypatch.setattr(f"caudal.{module}.load_model", lambda _: loaded.pop(0))
    options = RunOptions(sentiment=spec)
    request = LocalRequest(find_application("movies"), Sources(tmp_path), options=options)
    work = head_work(SparkJob(SparkSide(None), request, tmp_path), tmp_path / "ratings.csv")
    assert work.model == same
    (row,) = rows_of(work, [0])
    assert row["stage"] == ERROR
    assert b"of an executor differs from that of the driver" in row["payload"]  # type: ignore[operator]
    tasks._KEPT.clear()  # another process
    assert ERROR not in {row["stage"] for row in rows_of(work, [0])}


def test_the_same_question_is_planned_once(
    job: SparkJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "LocalCompute", None)  # nothing can be planned
    again = SparkJob(SparkSide(None), job.request, tmp_path)
    assert again.job_run.job.plan == job.job_run.job.plan
    unhinted = replace(job.request, options=RunOptions(hints=False))
    assert SparkJob(SparkSide(None), unhinted, tmp_path).job_run.job.plan != again.job_run.job.plan
