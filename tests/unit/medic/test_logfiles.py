"""The newest lines of a log, and those that are added."""

import time
from itertools import islice
from pathlib import Path

import pytest

from caudal.cli.main import main
from caudal.cli.status import ExitStatus
from caudal.cluster.folder import Cluster
from caudal.cluster.log_files import added_lines, newest_lines
from caudal.cluster.write_config import write_settings
from caudal.medic import launcher
from caudal.medic.launcher import LocalLauncher

LINES = [f"{number:04} " + "x" * 300 for number in range(1_000)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "worker-1.log"
    path.write_text("\n".join(LINES) + "\n")
    return path


@pytest.mark.parametrize("count", [1, 200, 999, 1_000, 5_000])
def test_as_many_lines_as_asked_for_each_whole(log: Path, count: int) -> None:
    found, end = newest_lines(log, count)
    assert found == LINES[-count:]
    assert end == log.stat().st_size


def test_a_line_without_an_end_counts(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("one\ntwo\nthr")
    assert newest_lines(path, 2)[0] == ["two", "thr"]


def test_no_log_has_no_lines(tmp_path: Path) -> None:
    assert newest_lines(tmp_path / "none", 5) == ([], 0)


@pytest.mark.parametrize("added", [0, 1, 50])
@pytest.mark.parametrize("count", [1, 40, 200, 5_000])
def test_a_log_that_was_just_shortened_has_as_many_lines(
    log: Path, monkeypatch: pytest.MonkeyPatch, count: int, added: int
) -> None:
    monkeypatch.setattr(launcher, "LOG_MOST", 200_000)
    launcher.shorten(log)
    assert log.stat().st_size == 0
    later = [f"later {number}" for number in range(added)]
    log.write_text("".join(f"{line}\n" for line in later))
    found, end = newest_lines(log, count)
    kept = 100_000 // len(LINES[0] + "\n")  # whole lines of the newest half
    assert found == [*LINES[-kept:], *later][-count:]
    assert end == log.stat().st_size, "who follows goes on at the end of the new part"


class EnoughError(Exception):
    """The story is over."""


def test_what_is_added_follows_also_after_the_log_was_shortened(log: Path) -> None:
    deeds = iter([("a", "added\nbeg"), ("a", "un\n"), ("w", "anew\n"), ("w", "a\n")])

    def pause() -> None:
        for mode, text in deeds:
            with log.open(mode) as file:
                file.write(text)
            return
        raise EnoughError

    found: list[str] = []
    with pytest.raises(EnoughError):
        found.extend(added_lines(log, newest_lines(log, 1)[1], pause))
    assert found == ["added", "begun", "anew", "a"]


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """A cluster whose worker-1 has logged, by now or earlier."""
    write_settings(tmp_path, broker="embedded")
    found = Cluster.open(tmp_path)
    found.logs.mkdir()
    found.log_of("worker-1").write_text("\n".join(LINES) + "\n")
    return found


def test_a_launcher_follows_a_log_that_grows_and_is_shortened(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "LOG_MOST", 200_000)
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waits for a line that is there"))
    log = cluster.log_of("worker-1")
    lines = LocalLauncher(cluster).log_lines("worker-1", 2, follow=True)
    assert list(islice(lines, 2)) == LINES[-2:]
    for text in ("grown", "grown again"):
        with log.open("a") as file:
            file.write(f"{text}\n")
        assert next(lines) == text
    launcher.shorten(log)
    assert log.stat().st_size == 0
    with log.open("a") as file:
        file.write("after that\n")
    assert next(lines) == "after that"


def test_the_command_gives_all_lines_that_were_asked_for(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["logs", "worker-1", "-n", "200", "--dir", str(cluster.folder)]) == ExitStatus.OK
    assert capsys.readouterr().out.splitlines() == LINES[-200:]


def test_the_command_follows_a_log_until_it_is_interrupted(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log, printed = cluster.log_of("worker-1"), list[str]()

    def pause(_: float) -> None:
        """A process writes while the command waits; then a person has seen enough."""
        printed.append(capsys.readouterr().out)
        if len(printed) > 2:
            raise KeyboardInterrupt
        with log.open("a") as file:
            file.write(f"later {len(printed)}\n")

    monkeypatch.setattr(time, "sleep", pause)
    words = ["logs", "worker-1", "-n", "2", "--follow", "--dir", str(cluster.folder)]
    assert main(words) == ExitStatus.INTERRUPTED
    assert printed == ["".join(f"{one}\n" for one in LINES[-2:]), "later 1\n", "later 2\n"]
