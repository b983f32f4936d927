"""A Python process of Spark that is killed in a map or in a fold costs time, no row."""

from pathlib import Path
from typing import Any

import pytest

from caudal.application import find_application
from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.run_options import Engine, RunOptions, SparkOptions
from caudal.spark import bootstrap, frames
from tests.spark.test_answers import assert_identical
from tests.spark_long.killing import killing

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


@pytest.mark.parametrize("task", ["map_rows", "fold_rows"])
def test_a_killed_python_process_changes_nothing(
    task: str, session: Any, generated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "MOST_BYTES", -1)  # folds run on executors, however small
    marker = tmp_path / "killed"
    monkeypatch.setattr(bootstrap, "task_function", killing(task, marker))
    app, sources = find_application("books"), Sources(generated / "books")
    expected = run_with(Engine.EMBEDDED, app, sources)
    options = RunOptions(spark=SparkOptions(session), batch_bytes=1 << 20)
    found = run_with(Engine.SPARK, app, sources, options=options)
    assert marker.read_text().startswith("python")
    assert_identical(found, expected)
    assert found.rejects.counts() == expected.rejects.counts()
