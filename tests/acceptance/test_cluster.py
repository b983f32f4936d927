"""A whole real cluster, and everything that may happen to it. Answers are compared in bytes."""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from caudal.broker.open_broker import open_broker
from caudal.cli.status import ExitStatus
from caudal.cluster.folder import Cluster
from caudal.jobs.ports import Bounds
from caudal.process.records import read_record, send_signal
from tests.acceptance.chaos import s3_store, storm
from tests.acceptance.cluster import CAUDAL, RealCluster, running
from tests.acceptance.streaming import Source
from tests.harness.freezing import freeze, thaw
from tests.harness.rabbit import require_rabbit, started_three
from tests.harness.waiting import until

SMALL = ("--batch-size", "64KiB", "--patience", "600")


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return Source.of("books", tmp_path_factory.mktemp("books"), 0.002)


@pytest.fixture(scope="module")
def movies(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return Source.of("movies", tmp_path_factory.mktemp("movies"), 0.002)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    require_rabbit()
    with running(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@contextlib.contextmanager
def client(real: RealCluster, source: Source, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A client that is under way."""
    with subprocess.Popen(
        real.submit(source.app, source.data, *SMALL, *more),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def job_of(process: subprocess.Popen[bytes]) -> str:
    """The job's id: the first line that a client says."""
    assert process.stderr is not None
    words = process.stderr.readline().decode().split()
    assert words[0] == "job", words
    return words[1]


def answer(process: subprocess.Popen[bytes]) -> bytes:
    """What a client says in the end; it must have ended well."""
    out, words = process.communicate()
    assert process.returncode == 0, words.decode()
    return out


def cluster_of(real: RealCluster) -> Cluster:
    return Cluster.open(real.folder)


def stored(real: RealCluster, job: str) -> list[str]:
    """The names of the files that the store holds of a job."""
    return [name for _, _, names in os.walk(real.folder / "store" / "jobs" / job) for name in names]


@pytest.mark.long
def test_three_clients_while_gateways_workers_medics_clients_and_the_broker_are_killed(
    real: RealCluster, books: Source, movies: Source
) -> None:
    given = argparse.Namespace(kills=10, clients=3, seed=11, every=1.0, broker=0.1)
    tally, report, _ = storm(real, [books, movies], given)
    assert tally.failed == []
    assert tally.wrong == 0
    assert tally.done >= 3
    assert report.lost == []


@pytest.mark.long
def test_all_data_of_the_broker_is_lost_in_the_middle_of_a_job(
    real: RealCluster, books: Source
) -> None:
    with client(real, books) as process:
        job_of(process)
        record = read_record(cluster_of(real).run_folder, "broker")
        assert record is not None
        send_signal(record, signal.SIGKILL)
        shutil.rmtree(real.folder / "broker" / "data", ignore_errors=True)
        assert answer(process) == books.answer


@pytest.mark.long
def test_the_store_is_away_for_a_while(tmp_path: Path, books: Source) -> None:
    """An S3 server that does not answer for twenty seconds."""
    require_rabbit()
    with (
        s3_store(tmp_path) as (server, more, environment),
        running(tmp_path / "cluster", *more, environment=environment) as real,
        client(real, books) as process,
    ):
        job_of(process)
        freeze(server.pid)
        time.sleep(20)
        thaw(server.pid)
        assert answer(process) == books.answer


def test_a_client_that_dies_and_never_returns_leaves_nothing(
    real: RealCluster, books: Source, movies: Source
) -> None:
    with client(real, movies) as other:
        with client(real, books, "--job-timeout", "5", "--file", "reviews=-") as process:
            job = job_of(process)
            until(lambda: bool(stored(real, job)))
        until(lambda: set(stored(real, job)) <= {"job.json", "outcome.json"})
        assert answer(other) == movies.answer
    until(lambda: waiting(real) == 0)


def waiting(real: RealCluster) -> int:
    broker = open_broker(cluster_of(real).broker_url(), "test")
    try:
        return sum(broker.depths().values())
    finally:
        broker.close()


def test_two_clients_with_the_same_job_id_and_content_both_get_the_answer(
    real: RealCluster, books: Source
) -> None:
    with client(real, books) as first, client(real, books, "--resume", job_of(first)) as second:
        assert answer(first) == books.answer
        assert answer(second) == books.answer


def test_another_content_under_the_same_job_id_is_refused(
    real: RealCluster, books: Source, movies: Source
) -> None:
    with client(real, books) as first:
        job = job_of(first)
        with client(real, movies, "--resume", job) as second:
            _, words = second.communicate()
            assert second.returncode not in (0, 70)
            assert "was started with another application" in words.decode()
        assert answer(first) == books.answer


POISON = """\
title = "Poison"
[[tables]]
name = "t"
files = ["t.csv"]
columns = ["a"]
"""


def test_a_poison_batch_fails_its_own_job_only(
    real: RealCluster, books: Source, tmp_path: Path
) -> None:
    (tmp_path / "app.toml").write_text(POISON)
    for folder, name, sql in (
        ("tables", "t", "SELECT a, NULL::VARCHAR AS reject FROM raw"),
        ("queries", "bad", "SELECT CAST(a AS INTEGER) AS n FROM t"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.sql").write_text(sql)
    (tmp_path / "t.csv").write_text("a\n1\nnot a number\n")
    with client(real, books) as healthy:
        poison = Source(str(tmp_path), tmp_path, b"")
        with client(real, poison) as process:
            _, words = process.communicate()
            assert process.returncode == ExitStatus.QUERY
            assert "not a number" in words.decode()
        assert answer(healthy) == books.answer


@pytest.mark.long
def test_a_long_computation_restarts_nobody(real: RealCluster, books: Source) -> None:
    """One core of a worker is busy in DuckDB, within one task; its own loop goes on beating.

    It lasts twice as long as the longest time after which somebody is taken for dead: 2 s without
    a beat, 2.7 s without a heartbeat of AMQP, 16 s for the mark of a task.
    """
    long_seconds = 2 * Bounds().stale_seconds
    before = {
        one.name: read_record(cluster_of(real).run_folder, one.name)
        for one in cluster_of(real).here
    }
    where = ["--data", str(books.data), "--gateway", real.gateways, "--format", "json"]
    for seconds in (1.2 * long_seconds, 4 * long_seconds):  # again if this machine became quicker
        command = [*CAUDAL, "sql", "books", computation(seconds), *where]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        if longest_task_seconds(real) > long_seconds:
            break
    assert longest_task_seconds(real) > long_seconds
    after = {
        one.name: read_record(cluster_of(real).run_folder, one.name)
        for one in cluster_of(real).here
    }
    assert after == before


def computation(seconds: float) -> str:
    """A SELECT that keeps one core of this machine busy for so long."""
    ask = "SELECT sum(hash(a.range + b.range) % 7) AS n FROM range({}) a, range(25000) b"
    with duckdb.connect(config={"threads": 1}) as database:
        began = time.process_time()
        database.execute(ask.format(4000)).fetchall()
        return ask.format(round(4000 * seconds / (time.process_time() - began)))


def longest_task_seconds(real: RealCluster) -> float:
    """By what the workers say of their tasks."""
    logs = (real.folder / "logs").glob("worker-*.log")
    said = (line for log in logs for line in log.read_text().splitlines() if '"task done"' in line)
    return max(float(json.loads(line)["seconds"]) for line in said)


def test_power_cut(real: RealCluster, books: Source) -> None:
    """Everything at once, -9; `caudal up` is all it takes, and the job goes on."""
    with client(real, books) as process:
        job_of(process)
        members = [
            read_record(cluster_of(real).run_folder, one.name) for one in cluster_of(real).here
        ]
        medics_first = sorted(
            zip(cluster_of(real).here, members, strict=True), key=lambda one: one[0].kind != "medic"
        )
        for _, record in medics_first:
            assert record is not None
            send_signal(record, signal.SIGKILL)
        real.caudal("up")
        assert answer(process) == books.answer


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_full_disk_costs_time_only(tmp_path: Path, books: Source) -> None:
    """The client sends its reviews while the disk is full: it says so, and so does a log."""
    require_rabbit()
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount a small disk")
    try:
        with running(tmp_path / "cluster", "--store", str(disk / "store")) as real:
            ballast = disk / "ballast"
            with client(real, books, "--file", "reviews=-") as process:
                job_of(process)
                assert process.stdin is not None
                with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
                    while file.write(bytes(1 << 20)):
                        pass
                rows = (books.data / "Books_rating.csv").read_bytes()
                feeder = threading.Thread(target=process.stdin.write, args=(rows,))
                feeder.start()
                line_with(process, "the store of the cluster is full")
                ballast.unlink()
                feeder.join()
                assert answer(process) == books.answer
            assert "the store or the broker refuses requests" in log_of_gateways(real)
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def line_with(process: subprocess.Popen[bytes], words: str) -> None:
    """Wait until the client says this."""
    assert process.stderr is not None
    while words not in (line := process.stderr.readline().decode()):
        assert line, "it ended without a word of it"


def log_of_gateways(real: RealCluster) -> str:
    return "".join(log.read_text() for log in (real.folder / "logs").glob("gateway-*.log"))


@pytest.mark.long
def test_one_node_of_three_is_lost(tmp_path: Path, books: Source) -> None:
    require_rabbit()
    with started_three(tmp_path) as nodes:
        urls = ",".join(node.url for node in nodes)
        with (
            running(tmp_path / "cluster", "--broker", urls, "--medics", "1") as real,
            client(real, books) as process,
        ):
            job_of(process)
            nodes[0].kill()
            assert answer(process) == books.answer
