"""What a listener is told while Spark maps a table."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.run_options import Engine, RunOptions, Silent, SparkOptions
from caudal.spark import bootstrap
from tests.harness.waiting import GUARD_SECONDS
from tests.spark.test_answers import application

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


def waiting(folder: Path) -> Callable[..., Any]:
    """Return a `task_function` whose tasks wait until there is a file with their number."""
    real, place, guard = bootstrap.task_function, str(folder), GUARD_SECONDS

    def made(*given: Any) -> Any:
        run = real(*given)

        def held(batches: Any) -> Any:
            import time
            from pathlib import Path

            from pyspark import TaskContext

            context: Any = TaskContext.get()
            permit = Path(place, str(context.partitionId()))
            deadline = time.monotonic() + guard
            while not permit.exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            yield from run(batches)

        return held

    return made


class Permitting(Silent):
    """Lets the first task end when it hears of the table, and the others when it hears more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told: list[int] = []
        self.total = 0

    def table(self, name: str, done_bytes: int, total_bytes: int) -> None:
        self.told.append(done_bytes)
        self.total = total_bytes
        for task in range(1 if done_bytes == 0 else 100):
            (self.folder / str(task)).touch()


def test_progress_rises_with_the_tasks_that_have_ended(
    tmp_path: Path, session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "".join(f"{n},{n}\n" for n in range(3000))
    (tmp_path / "t.csv").write_text(f"k,v\n{rows}")
    monkeypatch.setattr(bootstrap, "task_function", waiting(tmp_path))
    listener = Permitting(tmp_path)
    run_with(
        Engine.SPARK,
        application({"q": "SELECT count(*) AS n FROM t"}),
        Sources(tmp_path),
        options=RunOptions(spark=SparkOptions(session), batch_bytes=8 << 10),
        progress=listener,
    )
    assert listener.told[0] == 0
    assert listener.told == sorted(listener.told)
    assert len(set(listener.told)) > 2
    assert listener.told[-1] == listener.total == (tmp_path / "t.csv").stat().st_size
