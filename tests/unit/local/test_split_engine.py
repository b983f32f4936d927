"""The split engine as a run on the job machine: what it promises besides the right rows."""

import _thread
import gzip
import math
import tempfile
import threading
from pathlib import Path

import pytest
from tests.unit.engine.test_failing import SOUND, application

from caudal.duck import steps
from caudal.errors import QueryError
from caudal.files.sources import Sources
from caudal.local import split
from caudal.local.job import LocalJob, worker_limits
from caudal.local.threads import WorkerThreads
from caudal.run_options import RunOptions, Silent
from caudal.sql.planner import Fold
from caudal.worker.compute import LocalCompute

SMALL = RunOptions(threads=2, partitions=3, batch_bytes=500)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two tables; what runs leave in the system's temporary folder would lie in `left`."""
    lines = "".join(f"{row},{row % 3},word{row}\n" for row in range(300))
    for table in ("t", "u"):
        (tmp_path / f"{table}.csv").write_text("id,k,text\n" + lines, encoding="utf-8")
    (tmp_path / "left").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "left"))
    return tmp_path


def left(folder: Path) -> list[Path]:
    return list((folder / "left").iterdir())


def failing_folds(monkeypatch: pytest.MonkeyPatch, queries: tuple[str, ...]) -> None:
    """Folds of just these queries fail, as for want of time."""
    real = steps.fold

    def fold(stage: Fold, *rest: object) -> steps.Slices:
        if stage.queries == queries:
            raise QueryError("the query took more than 9 seconds")
        return real(stage, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(steps, "fold", fold)


def test_queries_that_failed_together_are_asked_again_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = application({"again": SOUND["groups"], **SOUND})
    failing_folds(monkeypatch, ("again", "groups"))

    answers = split.run(app, Sources(folder), options=SMALL)
    assert list(answers.results) == ["again", *SOUND]
    assert answers["again"].table.equals(answers["groups"].table)
    assert answers.failures == {}
    failing_folds(monkeypatch, ("again",))
    answers = split.run(app, Sources(folder), options=SMALL)
    assert list(answers.results) == list(SOUND)
    assert str(answers.failures["again"]) == "again.sql: the query took more than 9 seconds"


def test_nothing_is_left(folder: Path) -> None:
    split.run(application(SOUND), Sources(folder), options=SMALL)
    assert left(folder) == []
    with pytest.raises(QueryError):
        split.run(application({"bad": "SELECT text::INT AS i FROM t"}), Sources(folder))
    assert left(folder) == []


def test_an_interrupted_run_ends_whatever_is_computed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C comes while a worker computes what would never end."""
    endless = "SELECT count(*) AS n FROM range(100000000) a(x), range(100000000) b(y) WHERE x*y = 7"
    began, real = threading.Event(), LocalCompute.run

    def run(*arguments: object) -> bytes:
        began.set()
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(LocalCompute, "run", run)

    def interrupt() -> None:
        began.wait()
        _thread.interrupt_main()

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        split.run(application({"endless": endless}), Sources(folder))
    thread.join()
    assert left(folder) == []


def test_ctrl_c_while_threads_are_started_leaves_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        if thread.name == "caudal-worker-0":
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        split.run(application(SOUND), Sources(folder), options=SMALL)
    assert [one for one in threading.enumerate() if one.name.startswith("caudal-worker")] == []


def test_progress_of_a_compressed_file_is_that_of_its_bytes(folder: Path) -> None:
    packed = gzip.compress((folder / "t.csv").read_bytes(), mtime=0)
    (folder / "t.csv.gz").write_bytes(packed)
    (folder / "t.csv").unlink()
    told: list[tuple[int, int]] = []

    class Watching(Silent):
        def table(self, name: str, done_bytes: int, total_bytes: int) -> None:
            told.append((done_bytes, total_bytes))

    app = application({"total": SOUND["total"]})
    answers = split.run(app, Sources(folder), options=SMALL, progress=Watching())
    assert answers["total"].rows() == [{"s": sum(range(300))}]
    assert {total for _, total in told} == {len(packed)}
    assert told == sorted(told)
    assert [done for done, total in told if done == total] == [len(packed)]


def test_batches_are_not_kept_once_they_are_mapped(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many more batches than may wait: few of them are in memory at any time."""
    held: list[int] = []
    waiting = LocalJob._send_batch

    def noted(self: LocalJob, *arguments: object) -> None:
        waiting(self, *arguments)  # type: ignore[arg-type]
        held.append(len(self.store._fresh))

    monkeypatch.setattr(LocalJob, "_send_batch", noted)
    options = RunOptions(threads=1, batch_bytes=100)
    split.run(application({"total": SOUND["total"]}), Sources(folder), options=options)
    assert len(held) > 30
    assert max(held) <= 1 + options.threads + options.threads + 1


def test_hints_may_be_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT u.id FROM t JOIN u ON t.text = u.text WHERE t.k = 1 ORDER BY 1"
    made: list[int] = []
    real = steps.with_hint

    def noted(*arguments: object) -> steps.ScanWork:
        made.append(1)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(steps, "with_hint", noted)
    answers = {}
    for hints in (True, False):
        options = RunOptions(threads=1, hints=hints, batch_bytes=500)
        found = split.run(application({"q": sql}), Sources(folder), options=options)
        answers[hints] = found["q"].table, len(made)
        made.clear()
    assert answers[True][0].equals(answers[False][0])
    assert answers[True][1] > 0
    assert answers[False][1] == 0


def test_a_thread_that_ends_ends_the_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: WorkerThreads, ports: object) -> None:
        self.bugs.append(RuntimeError("a bug"))

    monkeypatch.setattr(WorkerThreads, "_work", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        split.run(application(SOUND), Sources(folder), options=SMALL)
    assert left(folder) == []


def test_a_step_may_take_any_time(tmp_path: Path) -> None:
    assert worker_limits(RunOptions(), tmp_path).seconds == math.inf
