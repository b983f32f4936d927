"""Suspects are condemned for what they do, and never for what is done to them.

The children are real. What they compute is written to a module of its own, so that most of them
start without importing Caudal; they tell and wait through named pipes, never by the clock.
"""

import hashlib
import importlib.util
import os
import select
import signal
import subprocess
import sys
import threading
import types
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import duckdb
import msgspec
import pytest
from tests.harness.freezing import freeze, thaw
from tests.harness.waiting import GUARD_SECONDS

from caudal import errors
from caudal.jobs.interfaces import SUSPECT_AFTER, is_suspect
from caudal.worker import suspects
from caudal.worker.suspect_child import described
from caudal.worker.suspects import (
    Condemned,
    Failed,
    Finished,
    Inconclusive,
    SuspectCall,
    SuspectLimits,
    Verdict,
    run_suspect,
)

LIMITS = SuspectLimits(memory_bytes=512 << 20, cpu_seconds=60)

TASKS = """
import atexit, ctypes, hashlib, os, pathlib

def healthy(arguments, folder):
    files = sorted(folder.iterdir())
    return hashlib.sha256(arguments + b"".join(one.read_bytes() for one in files)).digest()

def segfault(arguments, folder):
    ctypes.string_at(0)

def abort(arguments, folder):
    os.abort()

def hoard(arguments, folder):
    hoarded = []
    while True:
        hoarded.append(b"x" * (8 << 20))

def demand(arguments, folder):
    try:
        return bytes(1 << 50)
    except MemoryError:
        raise RuntimeError("something did not work") from None

def endless(arguments, folder):
    while True:
        pass

def hold(arguments, folder):
    tell, wait = arguments.decode().split(":")
    pathlib.Path(tell).write_text(str(os.getpid()))
    return pathlib.Path(wait).read_bytes()

def crash_late(arguments, folder):
    atexit.register(os.abort)
    return b"done before that"

def vanish(arguments, folder):
    print("nobody reads this")
    os._exit(3)

def spoil_output(arguments, folder):
    (folder.parent / "output").mkdir()
    return b"nowhere to go"

def cast(arguments, folder):
    from caudal.duck.sandbox import Sandbox
    with Sandbox() as sandbox:
        sandbox.select("SELECT CAST('seven' AS INTEGER)", {})

def starve_duckdb(arguments, folder):
    from caudal.duck.sandbox import SandboxLimits, Sandbox
    with Sandbox(SandboxLimits(memory_bytes=32 << 20)) as sandbox:
        sandbox.select("SELECT i, count(*) FROM range(9000000) t(i) GROUP BY i", {})

def miss_model(arguments, folder):
    from caudal.kernels.sentiment import load_model
    load_model(f"transformers:{folder}/nothing-here")
"""

PARENT = """
import importlib, sys
from pathlib import Path
from caudal.worker.suspects import SuspectCall, SuspectLimits, run_suspect
tasks = importlib.import_module("suspect_tasks")
call = SuspectCall(tasks.hold, sys.argv[1].encode())
run_suspect(call, SuspectLimits(), workspace=Path(sys.argv[2]))
"""


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """The module of computations, importable by children too."""
    path = tmp_path / "modules" / "suspect_tasks.py"
    path.parent.mkdir()
    path.write_text(TASKS, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(path.parent))
    spec = importlib.util.spec_from_file_location("suspect_tasks", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Held:
    """The computation `hold`: it tells its pid, then waits for the word that it returns."""

    def __init__(self, folder: Path) -> None:
        self.tell, self.wait = folder / "tell", folder / "wait"
        os.mkfifo(self.tell)
        os.mkfifo(self.wait)
        self._told = os.open(self.tell, os.O_RDONLY | os.O_NONBLOCK)

    @property
    def arguments(self) -> bytes:
        return f"{self.tell}:{self.wait}".encode()

    def pid(self) -> int:
        assert is_readable(self._told), "the computation did not begin"
        return int(os.read(self._told, 100))

    def release(self, word: bytes) -> None:
        self.wait.write_bytes(word)

    def close(self) -> None:
        os.close(self._told)


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    held = Held(tmp_path)
    yield held
    held.close()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def is_readable(descriptor: int) -> bool:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(1000 * GUARD_SECONDS))


def condemned(verdict: Verdict) -> str:
    assert isinstance(verdict, Condemned), verdict
    return verdict.reason


def inconclusive(verdict: Verdict) -> str:
    assert isinstance(verdict, Inconclusive), verdict
    return verdict.reason


def test_a_task_is_suspect_only_after_several_deliveries() -> None:
    assert [is_suspect(count) for count in range(1, 6)] == [False, False, False, True, True]
    assert is_suspect(2, threshold=1)


def test_a_healthy_task_redelivered_twenty_times_finishes_every_time(
    tasks: types.ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "rows").write_bytes(b"1,2\n" * 10_000)
    call = SuspectCall(tasks.healthy, b"q1", {"one": b"a,b\n", "two": tmp_path / "rows"})
    deliveries = range(SUSPECT_AFTER + 1, SUSPECT_AFTER + 21)
    verdicts = {run_suspect(call, LIMITS) for count in deliveries if is_suspect(count)}
    (verdict,) = verdicts
    assert isinstance(verdict, Finished)
    assert verdict.output == hashlib.sha256(b"q1" + b"a,b\n" + b"1,2\n" * 10_000).digest()


@pytest.mark.parametrize(("name", "died_of"), [("segfault", "SIGSEGV"), ("abort", "SIGABRT")])
def test_a_crash_condemns(tasks: types.ModuleType, name: str, died_of: str) -> None:
    verdict = run_suspect(SuspectCall(getattr(tasks, name)), LIMITS)
    assert condemned(verdict) == f"the task crashes its process ({died_of})"
    assert isinstance(verdict, Condemned)
    assert f"in {name}" in verdict.words


def test_a_crash_after_the_work_is_done_changes_nothing(tasks: types.ModuleType) -> None:
    assert run_suspect(SuspectCall(tasks.crash_late), LIMITS) == Finished(b"done before that")


@pytest.mark.parametrize("name", ["hoard", "demand"])
def test_a_memory_bomb_is_condemned(tasks: types.ModuleType, name: str) -> None:
    limits = replace(LIMITS, memory_bytes=200 << 20)
    verdict = run_suspect(SuspectCall(getattr(tasks, name)), limits)
    assert condemned(verdict) == "the task needs more than 200 MiB of memory"


def test_the_backstop_catches_a_bomb_that_nobody_watches(
    tasks: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suspects, "held_bytes", lambda pid: 0)
    monkeypatch.setattr(SuspectLimits, "data_bytes", 200 << 20)
    verdict = run_suspect(SuspectCall(tasks.hoard), LIMITS)
    assert condemned(verdict) == "the task needs more than 512 MiB of memory"


def test_an_endless_computation_is_condemned(tasks: types.ModuleType) -> None:
    verdict = run_suspect(SuspectCall(tasks.endless), replace(LIMITS, cpu_seconds=1))
    assert condemned(verdict) == "the task needs more than 1 s of CPU time"


def test_a_parent_that_ignores_sigxcpu_changes_nothing(tasks: types.ModuleType) -> None:
    before = signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    try:
        verdict = run_suspect(SuspectCall(tasks.endless), replace(LIMITS, cpu_seconds=1))
    finally:
        signal.signal(signal.SIGXCPU, before)
    assert condemned(verdict) == "the task needs more than 1 s of CPU time"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGBUS])
def test_a_kill_from_outside_is_inconclusive(
    tasks: types.ModuleType, held: Held, pool: ThreadPoolExecutor, number: signal.Signals
) -> None:
    running = pool.submit(run_suspect, SuspectCall(tasks.hold, held.arguments), LIMITS)
    os.kill(held.pid(), number)
    assert inconclusive(running.result()) == f"the suspect's child ended ({number.name})"


def test_a_child_stopped_and_continued_finishes(
    tasks: types.ModuleType, held: Held, pool: ThreadPoolExecutor
) -> None:
    running = pool.submit(run_suspect, SuspectCall(tasks.hold, held.arguments), LIMITS)
    pid = held.pid()
    freeze(pid)
    thaw(pid)
    held.release(b"went on")
    assert running.result() == Finished(b"went on")


def test_a_child_stopped_for_ever_is_inconclusive(
    tasks: types.ModuleType,
    held: Held,
    pool: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = types.SimpleNamespace(monotonic=lambda: 0.0)
    monkeypatch.setattr(suspects, "time", clock)
    running = pool.submit(run_suspect, SuspectCall(tasks.hold, held.arguments), LIMITS)
    freeze(held.pid())
    clock.monotonic = lambda: 2 * LIMITS.patience_seconds
    assert inconclusive(running.result()) == "the child took too much wall time"


def test_a_worker_told_to_stop_kills_the_child(
    tasks: types.ModuleType, held: Held, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    stop, workspace = threading.Event(), tmp_path / "workspace"
    workspace.mkdir()
    call = SuspectCall(tasks.hold, held.arguments)
    running = pool.submit(run_suspect, call, LIMITS, workspace=workspace, stop=(stop,))
    child = os.pidfd_open(held.pid())
    assert len(list(workspace.iterdir())) == 1
    stop.set()
    assert inconclusive(running.result()) == "the worker was told to stop"
    assert is_readable(child)
    os.close(child)
    assert list(workspace.iterdir()) == []


def test_a_parent_that_is_killed_takes_the_child_with_it(
    tasks: types.ModuleType, held: Held, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", PARENT, held.arguments.decode(), str(tmp_path)]
    with subprocess.Popen(command) as parent:
        try:
            child = os.pidfd_open(held.pid())
        finally:
            parent.kill()
    assert is_readable(child)
    os.close(child)


def test_a_deterministic_error_fails_with_its_message(tasks: types.ModuleType) -> None:
    verdict = run_suspect(SuspectCall(tasks.cast), LIMITS)
    assert isinstance(verdict, Failed), verdict
    assert type(verdict.error) is errors.QueryError
    assert "Could not convert string 'seven' to INT32" in str(verdict.error)


def test_out_of_memory_in_duckdb_is_an_error_and_not_a_death(tasks: types.ModuleType) -> None:
    verdict = run_suspect(SuspectCall(tasks.starve_duckdb), LIMITS)
    assert isinstance(verdict, Failed), verdict
    assert str(verdict.error) == "the query needs more than 32 MiB of memory"


def test_a_missing_model_is_inconclusive(tasks: types.ModuleType) -> None:
    reason = inconclusive(run_suspect(SuspectCall(tasks.miss_model), LIMITS))
    assert reason.startswith(("caudal.errors.MissingPackageError", "caudal.errors.UsageError"))


def test_a_folder_that_cannot_be_written_is_inconclusive(
    tasks: types.ModuleType, tmp_path: Path
) -> None:
    verdict = run_suspect(SuspectCall(tasks.healthy), LIMITS, workspace=tmp_path / "missing")
    assert inconclusive(verdict).startswith("the suspect's child could not be run: [Errno 2]")


def test_an_output_that_cannot_be_written_is_inconclusive(tasks: types.ModuleType) -> None:
    reason = inconclusive(run_suspect(SuspectCall(tasks.spoil_output), LIMITS))
    assert reason.startswith("builtins.IsADirectoryError: ")


def test_a_child_that_just_leaves_is_inconclusive(tasks: types.ModuleType) -> None:
    reason = inconclusive(run_suspect(SuspectCall(tasks.vanish), LIMITS))
    assert reason == "the suspect's child ended (exit status 3)"


def test_a_child_that_cannot_start_is_inconclusive(
    tasks: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH")
    reason = inconclusive(run_suspect(SuspectCall(tasks.healthy), LIMITS))
    assert "did not begin: ModuleNotFoundError: No module named 'suspect_tasks'" in reason
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    reason = inconclusive(run_suspect(SuspectCall(tasks.healthy), LIMITS))
    assert reason.startswith("the suspect's child could not be run: ")


@pytest.mark.parametrize(
    ("start", "why"),
    [
        ("hoard = []\nwhile True: hoard.append(b'x' * (8 << 20))", "held too much memory"),
        ("import os\nos.abort()", "SIGABRT"),
    ],
    ids=["hoards", "aborts"],
)
def test_a_start_that_crashes_or_exceeds_is_inconclusive(
    tasks: types.ModuleType, start: str, why: str
) -> None:
    Path(tasks.__file__ or "").write_text(start, encoding="utf-8")
    verdict = run_suspect(SuspectCall(tasks.healthy), LIMITS)
    assert inconclusive(verdict).startswith("the suspect's child did not begin: ")
    assert why in inconclusive(verdict)


def raised(error: Exception, cause: Exception | None = None) -> suspects.Raised:
    """What a child would report of an error."""
    try:
        raise error from cause
    except type(error) as caught:
        return msgspec.convert(described(caught), suspects.Raised)


@pytest.mark.parametrize(
    "kind", [errors.QueryError, errors.DataError, errors.ApplicationError, errors.FormatError]
)
def test_errors_of_the_computation_fail(kind: type[errors.CaudalError]) -> None:
    verdict = suspects.judge_error(raised(kind("why")), LIMITS)
    assert isinstance(verdict, Failed)
    assert (type(verdict.error), str(verdict.error)) == (kind, "why")


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (OSError(28, "No space left on device"), None),
        (errors.StoreError("away"), None),
        (errors.NotFoundError("gone"), None),
        (errors.MissingPackageError("install it"), None),
        (errors.UsageError("no model"), None),
        (ImportError("a broken installation"), None),
        (errors.QueryError("cannot spill"), duckdb.IOException("disk full")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_errors_around_the_computation_are_inconclusive(
    error: Exception, cause: Exception | None
) -> None:
    verdict = suspects.judge_error(raised(error, cause), LIMITS)
    assert str(error) in inconclusive(verdict)


@pytest.mark.parametrize(
    "error", [KeyError("k"), ValueError("v"), AssertionError(), RecursionError()]
)
def test_what_nobody_foresaw_condemns_in_a_child(error: Exception) -> None:
    verdict = suspects.judge_error(raised(error), LIMITS)
    assert isinstance(verdict, Condemned)
    assert type(error).__name__ in verdict.reason


@pytest.mark.parametrize(
    "error", [MemoryError(), OSError(12, "Cannot allocate memory")], ids=["MemoryError", "ENOMEM"]
)
def test_memory_that_was_refused_condemns_also_behind_another_error(error: Exception) -> None:
    for report in (raised(error), raised(RuntimeError("odd"), error)):
        assert "512 MiB of memory" in condemned(suspects.judge_error(report, LIMITS))


def test_a_call_must_name_what_a_child_can_import(tasks: types.ModuleType) -> None:
    with pytest.raises(ValueError, match="cannot be imported"):
        SuspectCall(lambda arguments, folder: b"")
    for name in ("../up", "a/b", "", "..", "."):
        with pytest.raises(ValueError, match="not a plain file name"):
            SuspectCall(tasks.healthy, inputs={name: b""})
