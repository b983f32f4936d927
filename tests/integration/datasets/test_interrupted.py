"""Ctrl-C and silent gateways: a command says what becomes of its work, and how to go on."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.harness.cluster_loads import shelf_of, stored_rows
from tests.harness.memory_cluster import Cluster, cluster, fair
from tests.harness.shelves import write_sales, write_sales_app, write_shops
from tests.harness.waiting import until

from caudal.cli.main import main
from caudal.cli.status import ExitStatus

CAUDAL = [sys.executable, "-m", "caudal"]


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    with cluster() as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_sales_app(tmp_path / "sales")
    write_shops(tmp_path)
    write_sales(tmp_path, "sales.csv", range(9))
    return tmp_path


def interrupted(
    command: list[str], seen: str, ready: Callable[[], bool] = lambda: True
) -> tuple[int, str]:
    """Press Ctrl-C when a line has appeared and all is ready; return the status and all words."""
    with subprocess.Popen(
        [*CAUDAL, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "COLUMNS": "300"},
    ) as process:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if seen in line:
                break
        until(ready)
        process.send_signal(signal.SIGINT)
        said += process.communicate()[0]
        return process.returncode, said


def test_a_load_that_was_not_sent_whole(running: Cluster, folder: Path) -> None:
    (server,) = running.servers
    server.unreliable.judge = lambda method, path: 503 if "/batches/" in path else None
    way = ["--gateway", running.gateway]
    load = ["load", "./sales", "--data", ".", *way, "--dataset", "half"]
    try:
        status, said = interrupted(load, "job load-")
    finally:
        server.unreliable.judge = fair
    assert status == ExitStatus.INTERRUPTED
    found = re.search(
        "nothing of this load is in half yet: run the same command to go on, and what has arrived "
        f"is not sent again; or drop the load with: caudal (cancel load-.* {way[1]})\ncaudal: "
        "interrupted\n",
        said,
    )
    assert found, said
    assert not shelf_of(running.store, name="half").exists()
    assert main(found[1].split()) == 0
    assert main(load) == 0
    assert len(stored_rows(shelf_of(running.store, name="half"), "sales")) == 9


def test_a_load_that_was_sent_is_finished_without_its_client(
    running: Cluster, folder: Path
) -> None:
    (server,) = running.servers
    before = len(server.unreliable.asked)

    def waits() -> bool:
        """Both tables were sent, and since then it has asked how the job is, again and again."""
        asked = server.unreliable.asked[before:]
        sent = [at for at, (how, path) in enumerate(asked) if how == "PUT" and "/batches/" in path]
        return len(sent) == 2 and len(asked) > sent[-1] + 3

    running.working.clear()
    load = ["load", "./sales", "--data", ".", "--gateway", running.gateway, "--dataset", "sent"]
    try:
        status, said = interrupted(load, "sent shops", waits)
    finally:
        running.working.set()
    assert status == ExitStatus.INTERRUPTED
    assert "all was sent, and the cluster finishes the load without this command: `caudal" in said
    assert (
        f"versions sent --gateway {running.gateway}` shows its version; or drop the load with: "
        in said
    )
    place = shelf_of(running.store, name="sent")
    until(lambda: place.exists() and place.contents().number == 1)
    assert len(stored_rows(place, "sales")) == 9


def test_a_load_into_a_folder(folder: Path) -> None:
    command = ["load", "./sales", "--file", "sales=-", "--to", "shelf"]
    process = subprocess.Popen(
        [*CAUDAL, *command], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    process.stdin.write("x" * (1 << 20))  # a pipe holds less: so it reads its input
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1]
    assert process.returncode == ExitStatus.INTERRUPTED
    assert "shelf holds this load whole or not at all: run the same command to go on" in said


def test_a_stream(folder: Path) -> None:
    command = ["load", "./sales", "--file", "sales=-", "--every", "0.1s", "--to", "shelf"]
    process = subprocess.Popen(
        [*CAUDAL, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write((folder / "sales.csv").read_text())
    process.stdin.flush()
    assert process.stdout.readline().startswith("version 1: 9 rows")
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1]
    assert process.returncode == ExitStatus.INTERRUPTED
    assert "rows of which a line was printed are loaded: send the whole stream again" in said


def test_a_question_and_gateways_that_do_not_answer(
    running: Cluster, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    way = ["--gateway", running.gateway, "--dataset", "asked"]
    assert main(["load", "./sales", "--data", ".", *way]) == 0
    running.working.clear()
    try:
        status, said = interrupted(["submit", "./sales", *way], "job ")
    finally:
        running.working.set()
    assert status == ExitStatus.INTERRUPTED
    assert "the cluster goes on with the answer: ask again, and what is computed is not" in said
    capsys.readouterr()
    (server,) = running.servers
    server.unreliable.judge = lambda method, path: 503
    try:
        assert main(["load", "./sales", "--data", ".", *way, "--patience", "0"]) != 0
    finally:
        server.unreliable.judge = fair
    assert "no gateway could serve this request for 0 seconds" in (told := capsys.readouterr().err)
    assert "nothing was sent: run the same command to go on" in told
