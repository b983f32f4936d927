"""Tasks of which one attempt does not end by itself."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from caudal.spark import bootstrap
from tests.harness.waiting import GUARD_SECONDS


def slowing(folder: Path) -> Callable[..., Any]:
    """Return a `task_function` that notes each attempt of a task in this folder. The first attempt
    of each kind stops when it has given its first rows, until Spark ends it."""
    real, place, guard = bootstrap.task_function, str(folder), GUARD_SECONDS

    def made(name: str, *given: Any) -> Any:
        run = real(name, *given)

        def noting(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import time
            from pathlib import Path

            from pyspark import TaskContext

            context: Any = TaskContext.get()
            task = f"{name}-{context.stageId()}-{context.partitionId()}"
            note = Path(place, f"{task}-{context.taskAttemptId()}")
            note.touch()  # a task of several groups comes here for each of them
            for batch in run(batches):
                yield batch
                try:
                    Path(place, f"slow-{name}").symlink_to(note.name)
                except FileExistsError:
                    continue
                time.sleep(guard)

        return noting

    return made


def attempts_of_slow_tasks(folder: Path) -> dict[str, int]:
    """Return how many attempts there were of the task of each kind that had a slow one."""
    slow = {one.name.removeprefix("slow-"): one.readlink().name for one in folder.glob("slow-*")}
    tasks = {kind: attempt.rpartition("-")[0] for kind, attempt in slow.items()}
    return {kind: len(list(folder.glob(f"{task}-*"))) for kind, task in tasks.items()}
