"""The command line on Spark: what a user types, in a process of its own, with its own session."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import caudal
from tests.spark.commands import ON_SPARK, QUESTION, asked, rows

pytest.importorskip("pyspark", reason="the extra caudal[spark] is not installed")


def test_the_command_prints_the_rows_of_the_embedded_engine(
    generated: Path, session: object
) -> None:
    """And no more: Spark's own greetings do not reach the terminal. A master counts more than the
    server that the environment names."""
    question = "sql", "books", QUESTION, "--data", str(generated / "books")
    embedded = asked(*question)
    found = asked(*question, *ON_SPARK, SPARK_REMOTE="sc://nobody:1")
    assert rows(found) == rows(embedded)
    assert found.stderr == embedded.stderr


def test_a_strict_run_ends_with_the_line_of_the_embedded_engine(
    generated: Path, session: object
) -> None:
    question = "sql", "books", QUESTION, "--data", str(generated / "books"), "--strict"
    embedded, found = asked(*question), asked(*question, *ON_SPARK)
    assert (found.returncode, found.stderr) == (embedded.returncode, embedded.stderr)
    assert re.search(r"line \d+: .* is empty", found.stderr)


def test_a_profile_with_little_memory_names_what_ran(generated: Path, session: object) -> None:
    """Operators and their rows are those of the same stages in one process."""

    answer = rows(asked("sql", "books", QUESTION, "--data", str(generated / "books")))

    def operators(*engine: str) -> list[list[str]]:
        question = "sql", "books", QUESTION, "--data", str(generated / "books"), "--profile"
        found = asked(*question, "--memory-limit", "600MB", *engine)
        assert rows(found) == answer
        told = (line.split() for line in found.stderr.splitlines())
        return [line[:-2] for line in told if line[:1] == ["sql"]]  # without bytes and seconds

    found = operators(*ON_SPARK)
    assert [line[1] for line in found] == ["scan1", "fold1", "finish"]
    assert found == operators("--engine", "split")


def test_a_dataset_is_asked_as_by_the_embedded_engine(
    generated: Path, session: object, tmp_path: Path
) -> None:
    place = str(tmp_path / "shelf")
    caudal.load("books", generated / "books", to=place)
    question = "sql", "books", QUESTION, "--from", place
    assert rows(asked(*question, *ON_SPARK)) == rows(asked(*question))


@pytest.mark.parametrize("name", ["-", "/dev/fd/{}"], ids=["standard input", "a pipe"])
def test_what_can_be_read_once_only_is_read(name: str, session: object) -> None:
    def told(*engine: str) -> str:
        end, begin = os.pipe()
        with os.fdopen(begin, "wb") as given:
            given.write(b"k,v\n1,a\n2,b\n")
        place = name.format(end)
        command = [sys.executable, "-m", "caudal", "sql", f"SELECT * FROM '{place}'", *engine]
        found = subprocess.run(
            [*command, "--quiet"], stdin=end, pass_fds=[end], capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        os.close(end)
        return rows(found).replace(place, "PLACE")

    assert told(*ON_SPARK) == told()


def test_an_application_has_the_answers_and_rejects_of_the_embedded_engine(
    generated: Path, session: object, tmp_path: Path
) -> None:
    def written(name: str, *engine: str) -> tuple[str, bytes]:
        """Return the answers that are printed, and the file of rejects."""
        rejects = tmp_path / f"{name}.csv"
        question = "books", "--data", str(generated / "books"), "--rejects", str(rejects)
        found = asked("run", *question, "--format", "json", *engine)
        assert found.returncode == 0, found.stderr
        return found.stdout, rejects.read_bytes()

    embedded = written("embedded")
    assert list(json.loads(embedded[0])) == ["q1", "q2", "q3", "q4", "q5"]
    assert len(embedded[1].splitlines()) > 10
    assert written("spark", *ON_SPARK) == embedded


@pytest.mark.parametrize(
    "question", [("sql", "books", QUESTION), ("run", "books")], ids=["sql", "run"]
)
def test_without_java_the_command_says_what_to_install(
    question: tuple[str, ...], generated: Path, tmp_path: Path
) -> None:
    for program in ("bash", "dirname"):
        (tmp_path / program).symlink_to(str(shutil.which(program)))
    data = "--data", str(generated / "books")
    found = asked(*question, *data, *ON_SPARK, PATH=str(tmp_path), JAVA_HOME="")
    assert found.returncode == 14
    assert found.stderr == (
        "caudal: cannot start Spark: it needs Java: install it (default-jre-headless), "
        "or set JAVA_HOME\n"
    )


@pytest.mark.parametrize(
    ("master", "told"),
    [("foo", "Master must either be yarn or start with spark, k8s, or local"),
     ("local[x]", "Could not parse Master URL: 'local[x]'")],
)  # fmt: skip
def test_a_master_that_is_none_is_told_in_one_line(
    master: str, told: str, generated: Path, session: object
) -> None:
    question = "sql", "books", QUESTION, "--data", str(generated / "books")
    found = asked(*question, "--engine", "spark", "--master", master)
    assert (found.returncode, found.stderr) == (14, f"caudal: cannot start Spark: {told}\n")


INTERRUPTED = """
import os, signal
from caudal.cli.main import main
from py4j.clientserver import ClientServerConnection

real = ClientServerConnection.send_command

def send(self, command):
    if "defaultParallelism" in command:  # a call of the main thread, before any job
        os.kill(os.getpid(), signal.{name})
    return real(self, command)

ClientServerConnection.send_command = send
main()
"""


@pytest.mark.parametrize(("name", "told"), [("SIGINT", "interrupted"), ("SIGTERM", "terminated")])
def test_an_interrupt_in_a_call_of_java_is_one_line(
    name: str, told: str, generated: Path, session: object
) -> None:
    question = "sql", "books", QUESTION, "--data", str(generated / "books"), "--quiet"
    found = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(name=name), *question, *ON_SPARK],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.stderr == f"caudal: {told}\n"


OPTION = """
from caudal.run_options import SparkOptions
from caudal.spark.session import open_session

with open_session(SparkOptions(master="local[1]")) as side:
    java = side.session.sparkContext._jvm.java.lang
    kind = java.Class.forName("com.sun.management.HotSpotDiagnosticMXBean")
    bean = java.management.ManagementFactory.getPlatformMXBean(kind)
    print(bean.getVMOption("TieredStopAtLevel").getValue())
"""


@pytest.mark.parametrize(
    ("own", "expected"), [("", "1"), ("spark.driver.extraJavaOptions -XX:TieredStopAtLevel=3", "3")]
)
def test_java_options_of_the_user_count_more(
    own: str, expected: str, tmp_path: Path, session: object
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(own)
    environment = {**os.environ, "SPARK_CONF_DIR": str(tmp_path)}
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", OPTION],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    assert found.stdout.split()[-1] == expected
