"""What is said when Spark is missing, misnamed or fails."""

import importlib.util
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from tests.harness.waiting import GUARD_SECONDS

import caudal
from caudal.cli.options import QueryOptions
from caudal.errors import MissingPackageError, SparkFailedError, UsageError
from caudal.run_options import Engine, RunOptions, SparkInputs, SparkOptions
from caudal.spark.session import SparkSide, open_session
from caudal.spark.starting import own_conf, retrying_master


def test_a_missing_package_is_named_with_its_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = importlib.util.find_spec

    def find(name: str, package: str | None = None) -> object:
        return None if name == "pyspark" else real(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    with pytest.raises(MissingPackageError, match=r"pip install 'caudal\[spark\]'"):
        caudal.sql("SELECT 1 AS a", engine="spark")


def test_a_session_is_for_the_spark_engine() -> None:
    with pytest.raises(UsageError, match='engine="spark"'):
        caudal.sql("SELECT 1 AS a", spark=object())


@pytest.mark.parametrize(
    ("given", "expected"),
    [("local", "local[1,4]"), ("local[2]", "local[2,4]"), ("local[*]", "local[*,4]"),
     ("local[2,1]", "local[2,1]"), ("spark://a:7077", "spark://a:7077")],
)  # fmt: skip
def test_a_local_master_repeats_tasks(given: str, expected: str) -> None:
    assert retrying_master(given) == expected


@pytest.mark.parametrize(
    ("options", "told"),
    [(SparkOptions(remote="http://a"), "sc://host"),
     (SparkOptions(object(), remote="sc://a"), "leave one of them out"),
     (SparkOptions(remote="sc://a", master="local"), "leave one of them out")],
)  # fmt: skip
def test_a_wrong_address_is_refused(options: SparkOptions, told: str) -> None:
    pytest.importorskip("pyspark", reason="the extra caudal[spark] is not installed")
    with pytest.raises(UsageError, match=told), open_session(options):
        pass


@pytest.mark.parametrize(
    "given", [{"master": "local"}, {"remote": "sc://a"}, {"ship": True}, {"inputs": "sent"}]
)
def test_options_of_spark_need_its_engine(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="add --engine spark"):
        QueryOptions(**given).run_options(None)
    found = QueryOptions(engine=Engine.SPARK, **given).run_options(None).spark
    assert {name: getattr(found, name) for name in given} == given


def test_inputs_are_checked_where_they_are_written() -> None:
    assert caudal.SparkOptions(inputs="shared") == SparkOptions(inputs=SparkInputs.SHARED)
    with pytest.raises(UsageError, match="inputs='near' is none of these: auto, shared, sent"):
        caudal.SparkOptions(inputs="near")  # type: ignore[arg-type]


@pytest.mark.parametrize("how", [SparkOptions(ship=True), SparkOptions(master="local[3]")])
def test_python_says_all_that_the_command_line_can(
    how: SparkOptions, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A session is short for options that only name it."""
    given: list[tuple[str, SparkOptions]] = []

    def ran(engine: str, *_: Any, options: RunOptions, **__: Any) -> None:
        given.append((engine, options.spark))

    monkeypatch.setattr("caudal.local.engines.run_with", ran)
    caudal.run("books", tmp_path, engine="spark", spark=how)
    caudal.run("books", tmp_path, engine="spark", spark="a session")
    assert given == [("spark", how), ("spark", SparkOptions("a session"))]


def test_only_the_jvm_of_a_local_master_compiles_less() -> None:
    pytest.importorskip("pyspark", reason="the extra caudal[spark] is not installed")
    options = "spark.driver.defaultJavaOptions"
    assert own_conf("local[2]").get(options) == "-XX:TieredStopAtLevel=1"
    assert own_conf(None).get(options) == "-XX:TieredStopAtLevel=1"
    assert own_conf("spark://a:7077").get(options) is None


class LateSession:
    """A session whose job starts after it was cancelled once, and then needs another cancel."""

    def __init__(self) -> None:
        self.cancels = 0
        self.sparkContext = self
        self.ended = threading.Event()

    def setJobGroup(self, *_: object) -> None: ...  # noqa: N802

    def getTags(self) -> set[str]:  # noqa: N802
        return set()

    def cancelJobGroup(self, _: str) -> None:  # noqa: N802
        self.cancels += 1
        if self.cancels == 2:
            self.ended.set()

    def statusTracker(self) -> Any:  # noqa: N802
        raise KeyboardInterrupt


def test_a_job_that_starts_after_the_interrupt_is_cancelled_too() -> None:
    pytest.importorskip("pyspark", reason="the extra caudal[spark] is not installed")
    session = LateSession()
    with pytest.raises(KeyboardInterrupt):
        SparkSide(session).run(session.ended.wait, told=lambda _: None)
    assert session.ended.is_set()


class RemoteSession:
    """A session of Connect: handlers of progress hear of all its operations, each in the thread of
    the operation."""

    sparkContext = None  # noqa: N815

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.tags = threading.local()

    def registerProgressHandler(self, handler: Any) -> None:  # noqa: N802
        self.heard.append(handler)

    def removeProgressHandler(self, handler: Any) -> None:  # noqa: N802
        self.heard.remove(handler)

    def getTags(self) -> set[str]:  # noqa: N802
        return set(vars(self.tags))

    def addTag(self, tag: str) -> None:  # noqa: N802
        setattr(self.tags, tag, True)

    def tell(self, done: int) -> None:
        for handler in self.heard:
            handler(stages=[SimpleNamespace(num_tasks=4, num_completed_tasks=done)], done=False)


def test_another_operation_of_a_remote_session_is_no_progress() -> None:
    session, told, heard = RemoteSession(), list[float](), threading.Event()
    session.addTag("own")

    def action() -> set[str]:
        session.tell(1)
        heard.wait(GUARD_SECONDS)
        return session.getTags()

    def hear(share: float) -> None:
        session.tell(3)  # of an operation of this thread
        told.append(share)
        if told.count(0.25) > 1:
            heard.set()

    tags = SparkSide(session).run(action, hear)
    assert "own" in tags
    assert len(tags) == 2
    assert set(told) <= {0.0, 0.25}
    assert session.heard == []


class Kept:
    """A frame that Spark keeps until it is freed."""

    def __init__(self, freed: list[int], number: int) -> None:
        self.freed, self.number = freed, number

    def persist(self) -> "Kept":
        return self

    def unpersist(self) -> None:
        self.freed.append(self.number)
        if self.number == 1:
            raise ConnectionResetError


def test_every_frame_is_freed_although_one_cannot_be() -> None:
    side, freed = SparkSide(None), list[int]()
    with side.frames():
        for number in range(4):
            side.keep(Kept(freed, number))
    assert freed == [0, 1, 2, 3]


class _PySparkError(Exception):
    pass


def test_an_error_of_building_a_frame_is_one_line_too(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark", reason="the extra caudal[spark] is not installed")
    monkeypatch.setattr(_PySparkError, "__module__", "pyspark.errors")
    options = SparkOptions(session=Mock())
    with (
        pytest.raises(SparkFailedError, match=r"^Spark failed: pandas is too old$"),
        open_session(options),
    ):
        raise _PySparkError("[OLD] pandas is too old\n\tat org.apache.spark.Dataset")
    with pytest.raises(ZeroDivisionError), open_session(options):
        raise ZeroDivisionError
