"""`caudal submit` as a real process: killed, interrupted, resumed, watched on a terminal."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import caudal
from caudal.cli.status import ExitStatus
from caudal.model import ParameterValue
from caudal.store.port import entries
from tests.harness.memory_cluster import Cluster, cluster
from tests.harness.waiting import until

PARAMETERS: dict[str, ParameterValue] = {"min_reviews": 3, "min_decades": 1}
PARAM = [f"--param={name}={value}" for name, value in PARAMETERS.items()]


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("books")
    titles = [f"Distributed Book {number}" for number in range(30)]
    rows = [
        f"{title},\"['Ann']\",,{1990 + number % 20},['{('Computers', 'Fiction')[number % 2]}']\n"
        for number, title in enumerate(titles)
    ]
    header = "Title,authors,publisher,publishedDate,categories\n"
    (folder / "books_data.csv").write_text(header + "".join(rows))
    texts = ["a wonderful tale", "terrible", '"two\nlines, of it"']
    reviews = [
        f"{titles[number * 13 % 30]},{number % 5 + 1}.0,{texts[number * 7 % 3]}\n"
        for number in range(2500)
    ]
    (folder / "Books_rating.csv").write_text("Title,review/score,review/text\n" + "".join(reviews))
    return folder


@pytest.fixture
def one() -> Iterator[Cluster]:
    with cluster() as found:
        yield found


@contextlib.contextmanager
def client(
    one: Cluster, books: Path, out: Path, *words: str, errors: int = subprocess.PIPE
) -> Iterator[subprocess.Popen[bytes]]:
    """A client that reads its reviews from a pipe."""
    command = [sys.executable, "-m", "caudal", "submit", "books", "-d", str(books)]
    command += ["-g", one.gateway, "--batch-size", "4KiB", "--out", str(out), *PARAM, *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=errors) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def write_half(process: subprocess.Popen[bytes], books: Path) -> bytes:
    """Give it half of the reviews; gives the rest."""
    data = (books / "Books_rating.csv").read_bytes()
    half = len(data) // 2
    assert process.stdin is not None
    process.stdin.write(data[:half])
    process.stdin.flush()
    return data[half:]


def arrived(one: Cluster, table: str) -> set[int]:
    """Return the numbers of the batches that are in the store; there are less than a thousand."""
    keys = (entry.key for entry in entries(one.store, "jobs/"))
    return {int(key[-3:]) for key in keys if f"/batches/{table}/" in key}


def job_of(one: Cluster) -> str:
    [job] = caudal.Client(one.gateway).jobs()
    return job.id


def same_files(one: Path, other: Path) -> None:
    for path in other.iterdir():
        assert (one / path.name).read_bytes() == path.read_bytes()


@pytest.fixture(scope="module")
def files(books: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `caudal run` writes."""
    out = tmp_path_factory.mktemp("run")
    command = [sys.executable, "-m", "caudal", "run", "books", "-d", str(books), *PARAM]
    subprocess.run([*command, "--out", str(out)], check=True, capture_output=True)
    return out


def test_killed_in_the_middle_and_resumed(
    one: Cluster, books: Path, tmp_path: Path, files: Path
) -> None:
    out = tmp_path / "out"
    with client(one, books, out, "--file", "reviews=-") as process:
        write_half(process, books)
        until(lambda: len(arrived(one, "reviews")) >= 5)
        process.send_signal(signal.SIGKILL)
    before = arrived(one, "reviews")
    asked = len(one.servers[0].unreliable.asked)
    with client(one, books, out, "--resume", job_of(one)) as process:
        assert process.wait() == 0
    same_files(out, files)
    again = one.servers[0].unreliable.asked[asked:]
    puts = [path for method, path in again if method == "PUT" and "/reviews/batches/" in path]
    sent = [int(path.rpartition("/")[2]) for path in puts]
    assert len(sent) == len(set(sent))
    assert len(before & set(sent)) == 1  # the gateway compares its header, which may have changed


def test_answers_are_written_while_other_tables_are_still_sent(
    one: Cluster, books: Path, tmp_path: Path, files: Path
) -> None:
    out = tmp_path / "out"
    with client(one, books, out, "--file", "reviews=-") as process:
        rest = write_half(process, books)
        until(lambda: (out / "q1.csv").exists() and (out / "q2.csv").exists())
        assert caudal.Client(one.gateway).status(job_of(one)).tables["reviews"].batches is None
        assert not (out / "q3.csv").exists()
        assert process.stdin is not None
        process.stdin.write(rest)
        process.stdin.close()
        process.stdin = None
        assert process.wait() == 0
    same_files(out, files)


def test_ctrl_c_says_how_to_go_on(one: Cluster, books: Path, tmp_path: Path, files: Path) -> None:
    out = tmp_path / "out"
    with client(one, books, out, "--file", "reviews=-") as process:
        write_half(process, books)
        until(lambda: len(arrived(one, "reviews")) >= 5)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert process.returncode == ExitStatus.INTERRUPTED
    job = job_of(one)
    said = errors.decode()
    assert f"--resume {job}" in said
    assert f"caudal cancel {job} --gateway {one.gateway}" in said
    assert "Traceback" not in said
    with client(one, books, out, "--resume", job) as process:
        assert process.wait() == 0
    same_files(out, files)


def test_a_terminal_shows_bars_and_rows_before_the_table_ends(
    one: Cluster, books: Path, tmp_path: Path, files: Path
) -> None:
    """Books come through the pipe: q1 filters them, and its first rows are seen at once."""
    ours, theirs = pty.openpty()
    seen = bytearray()

    def read() -> None:
        with contextlib.suppress(OSError):
            while data := os.read(ours, 4096):
                seen.extend(data)

    reader = threading.Thread(target=read)
    reader.start()
    data = (books / "books_data.csv").read_bytes()
    header, _, lines = data.partition(b"\n")
    many = header + b"\n" + lines * 8
    out = tmp_path / "out"
    with client(one, books, out, "-q", "q1", "--file", "books=-", errors=theirs) as process:
        os.close(theirs)
        assert process.stdin is not None
        process.stdin.write(many[:9000])
        process.stdin.flush()
        until(lambda: b"q1 so far: title: Distributed Book" in seen)
        assert not (out / "q1.csv").exists()
        process.stdin.write(many[9000:])
        process.stdin.close()
        process.stdin = None
        assert process.wait() == 0
    reader.join()
    os.close(ours)
    assert b"books" in seen
    rows = len((files / "q1.csv").read_text().splitlines()) - 1
    assert len((out / "q1.csv").read_text().splitlines()) - 1 == 8 * rows
