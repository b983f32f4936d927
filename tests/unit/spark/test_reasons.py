"""Errors of Spark as one line: the reason, not a frame of Java."""

import io
import logging
import sys
from typing import Any

import pytest

from caudal.errors import SparkFailedError
from caudal.spark.reasons import JVM_ENDED, errors_of_spark, one_reason, quiet_logs, spark_errors

CALL = "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
FRAME = "\tat org.apache.spark.SparkContext$.a$b(SparkContext.scala:3391)\n"
OLD_PYTHON = (
    """An exception was thrown from the Python worker:
  File "worker.py", line 1, in main
pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python differs.

"""
    + FRAME
)
IN_TASK = (
    CALL
    + """: org.apache.spark.SparkException: Job aborted due to failed:
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "<stdin>", line 3, in run
    raise it
{}

"""
    + FRAME
    + "Driver stacktrace:\n"
    + FRAME
)
SUBMIT = f"""WARNING: Using incubator modules: jdk.incubator.vector
Exception in thread "main" org.apache.spark.SparkException: Master must start with spark
{FRAME}"""
LARGE = CALL + (
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Total size of serialized "
    "results of 3 tasks (1153 KiB) is bigger than spark.driver.maxResultSize (1024 KiB).\n" + FRAME
)
CRASHED = CALL + (
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Lost task 0.1\n" + FRAME
    + "Caused by: org.apache.spark.SparkException: Python worker exited (crashed)\n" + FRAME
    + "\t... 1 more\nCaused by: java.io.EOFException\n" + FRAME + "\t... 12 more\n"
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (OLD_PYTHON, "Python differs."),
        ("[CONNECT] nobody answers\n\tat org.apache", "nobody answers"),
        ("", "no reason is known"),
        (CALL + ": org.apache.spark.SparkException: no master: foo\n" + FRAME, "no master: foo"),
        (IN_TASK.format("MemoryError"), "MemoryError"),
        (IN_TASK.format("KeyError: 'oops'"), "KeyError: 'oops'"),
        (IN_TASK.format("caudal.errors.StoreError: cannot read a"), "cannot read a"),
        (IN_TASK.format("pyarrow.lib.ArrowInvalid: bad"), "pyarrow.lib.ArrowInvalid: bad"),
        (SUBMIT, "Master must start with spark"),
        (CRASHED, "Python worker exited (crashed)"),
        (CALL + ": java.lang.NullPointerException\n" + FRAME, "java.lang.NullPointerException"),
    ],
)  # fmt: skip
def test_the_reason_is_one_line_and_no_frame(text: str, reason: str) -> None:
    assert one_reason(text) == reason


def test_the_setting_of_large_results_is_named() -> None:
    assert one_reason(LARGE).endswith(
        "is bigger than spark.driver.maxResultSize (1024 KiB): set it higher for a new session"
    )


def raised_in(package: str, error: str) -> None:
    """Raise an error in code of this package."""
    named: dict[str, Any] = {"__name__": f"{package}.inner"}
    exec(f"def fail():\n    raise {error}", named)
    named["fail"]()


BROKEN = r"the connection to it broke \(\[Errno 104\] reset\)"


@pytest.mark.parametrize(
    ("package", "told"),
    [
        ("py4j", JVM_ENDED),
        ("pyspark.serializers", JVM_ENDED),
        ("pyspark.sql.connect.client", BROKEN),
        ("grpc", BROKEN),
    ],
)
def test_only_a_connection_to_the_jvm_is_its_end(package: str, told: str) -> None:
    with (
        pytest.raises(SparkFailedError, match=f"^Spark failed: {told}$"),
        spark_errors("Spark failed"),
    ):
        raised_in(package, "ConnectionResetError(104, 'reset')")


def test_errors_in_the_code_of_spark_are_told_from_others() -> None:
    with pytest.raises(SparkFailedError, match=JVM_ENDED), errors_of_spark():
        raised_in("py4j", "ConnectionRefusedError(111, 'refused')")
    with pytest.raises(SparkFailedError, match="no attribute"), errors_of_spark():
        raised_in("pyspark", "AttributeError('no attribute sc')")
    with pytest.raises(FileNotFoundError), errors_of_spark():
        raised_in("elsewhere", "FileNotFoundError(2, 'no file')")


def log_as(package: str) -> None:
    code = compile("import logging\nlogging.error('said')", f"/lib/{package}/gateway.py", "exec")
    exec(code)


def test_what_py4j_logs_about_an_interrupt_is_not_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(sys, "stderr", printed := io.StringIO())
    with quiet_logs():
        with quiet_logs():
            log_as("py4j")
        log_as("py4j")
        py4j = logging.getLogger("py4j")
        monkeypatch.setattr(py4j, "handlers", [logging.NullHandler()])
        py4j.getChild("clientserver").error("closed")
        assert printed.getvalue() == ""
        log_as("mine")
    assert printed.getvalue() == "said\n"
    assert (root.handlers, root.filters) == ([], [])  # the logging of the program is as before
