"""The command line as a process: its streams, its signals, names that are not UTF-8."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.harness.waiting import GUARD_SECONDS

from caudal.cli.program import COMMANDS, load
from caudal.cli.status import ExitStatus

CAUDAL = [sys.executable, "-m", "caudal"]
MANY = "SELECT i FROM range(100000) AS t(i)"


def shell(line: str, *arguments: str | bytes) -> subprocess.CompletedProcess[bytes]:
    """A line of shell in which "$@" is caudal with these arguments."""
    words: Sequence[str | bytes] = ["bash", "-c", line, "bash", *CAUDAL, *arguments]
    return subprocess.run(words, capture_output=True, timeout=GUARD_SECONDS, check=False)


def test_a_full_standard_output() -> None:
    done = shell('"$@" >/dev/full', "apps")
    assert done.returncode == ExitStatus.OUTPUT
    assert done.stderr == b"caudal: cannot write to standard output: No space left on device\n"


def test_a_closed_standard_output() -> None:
    done = shell('"$@" >&-', "sql", "SELECT 1 AS a", "--format", "csv")
    assert done.returncode == ExitStatus.OUTPUT
    assert b"cannot write to standard output" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_closed_standard_error_changes_nothing(tmp_path: Path) -> None:
    done = shell('"$@" 2>&-', "sql", "SELECT 1 AS a", "--out", str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (tmp_path / "sql.csv").read_text() == "a\n1\n"


def test_a_full_standard_error_changes_nothing() -> None:
    done = shell('"$@" 2>/dev/full', "sql", "SELECT 1 AS a", "--format", "csv")
    assert (done.returncode, done.stdout) == (0, b"a\n1\n")


def test_a_reader_that_has_read_enough() -> None:
    done = shell('"$@" | head -1; exit ${PIPESTATUS[0]}', "apps")
    assert done.returncode == ExitStatus.OK
    assert done.stdout.startswith(b"books")
    assert done.stderr == b""


def test_a_device_is_written_to_and_stays_one(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('a\n"open\n')
    done = shell(
        '"$@" | cat', "sql", "FROM 'x.csv'", "-d", str(tmp_path), "--rejects", "/dev/stdout",
        "--out", str(tmp_path / "out"),
    )  # fmt: skip
    assert b"x,x.csv,2,unclosed quote" in done.stdout.replace(bytes(tmp_path) + b"/", b"")
    assert Path("/dev/stdout").is_symlink()
    done = shell('"$@"', "sql", "FROM 'x.csv'", "-d", str(tmp_path), "--rejects", "/dev/full")
    assert done.returncode == ExitStatus.OUTPUT
    assert b"cannot write /dev/full: No space left on device" in done.stderr


@pytest.mark.parametrize("arguments", [["SELECT '\xff'"], ["movies", "SELECT '\xff'"]])
def test_sql_that_is_not_utf8(arguments: list[str]) -> None:
    done = shell('"$@"', "sql", *(word.encode("latin-1") for word in arguments))
    assert done.returncode == ExitStatus.USAGE
    assert done.stderr == b"caudal: the query is not UTF-8 text: give it in UTF-8\n"


def test_arguments_that_are_not_utf8(tmp_path: Path) -> None:
    done = shell('"$@"', "run", b"caf\xe9")
    assert done.returncode == ExitStatus.USAGE
    assert b"caf\\udce9" in done.stderr
    done = shell('"$@"', "run", "movies", "-d", str(tmp_path), "--param", b"country=\xe9")
    assert done.returncode == ExitStatus.USAGE
    assert b"not UTF-8" in done.stderr
    done = shell('"$@"', "new", os.fsencode(tmp_path) + b"/caf\xe9", "x.csv")
    assert done.returncode in (ExitStatus.USAGE, ExitStatus.DATA)
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("engine", ["embedded", "split"])
def test_files_whose_names_are_not_utf8(tmp_path: Path, engine: str) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    folder.mkdir()
    (folder / "ratings.csv").write_text("userId,movieId,rating\n1,1,4\n1,x,4\n")
    rejects = Path(os.fsdecode(os.fsencode(tmp_path) + b"/rej\xe9.csv"))
    done = shell(
        '"$@"', "sql", "movies", "SELECT count(*) AS n FROM ratings", "--engine", engine,
        "-d", os.fsencode(folder), "--rejects", os.fsencode(rejects), "--format", "csv",
    )  # fmt: skip
    assert done.stdout == b"n\n1\n", done.stderr
    assert rejects.read_text().splitlines()[1:] == [
        f"ratings,{tmp_path}/caf\\xe9/ratings.csv,3,movieId is not an integer"
    ]


WITH_SIGNAL = """
import os, signal, sys, threading
sys.argv = ["caudal", "apps"]
from caudal.cli import main
listen = main._listen
def listen_and_be_told():
    listen()
    os.kill(os.getpid(), signal.{name})
main._listen = listen_and_be_told
main.main()
"""


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("SIGINT", ExitStatus.INTERRUPTED, b"caudal: interrupted\n"),
        ("SIGTERM", ExitStatus.TERMINATED, b"caudal: terminated\n"),
    ],
)
def test_a_signal_before_anything_is_imported(name: str, status: int, said: bytes) -> None:
    code = WITH_SIGNAL.replace("{name}", name)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (status, b"", said)


def test_what_is_ignored_stays_ignored() -> None:
    done = shell("trap '' INT; " + '"$@"', "--version")
    assert done.returncode == ExitStatus.OK


@pytest.mark.parametrize(
    ("engine", "number", "status", "word"),
    [
        ("embedded", signal.SIGTERM, ExitStatus.TERMINATED, b"terminated"),
        ("split", signal.SIGTERM, ExitStatus.TERMINATED, b"terminated"),
        ("embedded", signal.SIGINT, ExitStatus.INTERRUPTED, b"interrupted"),
    ],
)
def test_a_signal_leaves_nothing_behind(
    tmp_path: Path, engine: str, number: int, status: ExitStatus, word: bytes
) -> None:
    """It has begun to write and to spill: it is in the middle of its work."""
    spill = tmp_path / "tmp"
    spill.mkdir()
    (tmp_path / "ratings.csv").write_text("userId,movieId,rating\n" + "1,1,4\n" * 2_000_000)
    command = [*CAUDAL, "sql", "movies", SLOW, "-d", str(tmp_path), "--engine", engine]
    command += ["--rejects", str(tmp_path / "rejects.csv"), "--out", str(tmp_path / "out")]
    environment = {**os.environ, "TMPDIR": str(spill)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment)
    try:
        partial = f".rejects.csv.{process.pid}.partial"
        deadline = time.monotonic() + GUARD_SECONDS
        while not ((tmp_path / partial).exists() and any(spill.iterdir())):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
        _, err = process.communicate(timeout=GUARD_SECONDS)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == status
    assert b"Traceback" not in err
    assert err.endswith(b"caudal: " + word + b"\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ratings.csv", "tmp"]
    assert list(spill.iterdir()) == []


SLOW = "SELECT count(*) FROM ratings AS a, ratings AS b WHERE a.rating + b.rating > 9"


def test_help_needs_no_engine() -> None:
    code = (
        "import sys, caudal\nfrom caudal.cli.main import main\n"
        "for word in ('--help', '--version'): assert main([word]) == 0\n"
        "heavy = {'duckdb', 'pyarrow', 'numba', 'numpy', 'sqlglot'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_what_help_says_of_a_command_is_what_the_command_says() -> None:
    for command in COMMANDS:
        loaded = load(command)
        assert (loaded.help or "").strip().splitlines()[0] == command.about, command.name
        assert loaded.name == command.name


def test_help_lists_every_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    from caudal.cli.main import main

    assert main(["--help"]) == ExitStatus.OK
    out = " ".join(capsys.readouterr().out.split())
    for status in ExitStatus:
        assert f"{status.value}: {status.meaning.replace('`', '')}" in out


def test_a_disk_that_takes_only_a_part(tmp_path: Path) -> None:
    """A short write, then none: the limit of a file's size stands for the end of a disk."""
    line = f"trap '' XFSZ; ulimit -f 8; PYTHONUNBUFFERED=1 \"$@\" >{tmp_path}/out"
    done = shell(line, "sql", MANY, "--format", "csv")
    assert done.returncode == ExitStatus.OUTPUT
    assert b"caudal: cannot write to standard output: File too large" in done.stderr


def test_a_pipe_that_does_not_block_is_waited_for() -> None:
    code = (
        "import os, subprocess, sys, time\n"
        "reading, writing = os.pipe()\n"
        "os.set_blocking(writing, False)\n"
        "process = subprocess.Popen(sys.argv[1:], stdout=writing)\n"
        "os.close(writing)\n"
        "print(sum(map(len, iter(lambda: os.read(reading, 1 << 16), b''))))\n"
        "sys.exit(process.wait())\n"
    )
    asked = [*CAUDAL, "sql", MANY, "--format", "csv"]
    done = subprocess.run([sys.executable, "-c", code, *asked], capture_output=True, check=True)
    assert int(done.stdout) == len("i\n") + sum(len(f"{i}\n") for i in range(100_000))


def test_a_reader_that_has_read_enough_stops_the_query() -> None:
    """It would take hours, and more memory than there is."""
    endless = "SELECT i, i * 2 AS j FROM range(1000000000000) AS t(i)"
    for form, first in (("csv", b"i,j\n0,0\n"), ("jsonl", b'{"i":0,"j":0}\n{"i":1,"j":2}\n')):
        done = shell('"$@" | head -2; exit ${PIPESTATUS[0]}', "sql", endless, "--format", form)
        assert (done.returncode, done.stdout) == (ExitStatus.OK, first)
