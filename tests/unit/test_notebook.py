"""What a notebook shows, in a real IPython."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

import caudal

CASE = Path(caudal.__file__).parent / "apps" / "movies" / "cases" / "a_single_film"


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    settings = Config(
        {"HistoryManager": {"enabled": False}, "InteractiveShell": {"colors": "nocolor"}}
    )
    shell = InteractiveShell.instance(config=settings)
    yield shell
    InteractiveShell.clear_instance()


def shown(shell: InteractiveShell, code: str) -> str:
    with capture_output() as captured:
        shell.run_cell(code)  # type: ignore[no-untyped-call]
    return str(captured.stdout + captured.stderr)


def test_an_error_of_caudal_is_one_line(shell: InteractiveShell) -> None:
    lines = shown(shell, "import caudal\ncaudal.sql('SELECT nope')").strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("UsageError: the query: ")


def test_an_error_of_somebody_else_keeps_its_traceback(shell: InteractiveShell) -> None:
    assert "Traceback" in shown(shell, "1 / 0")


@pytest.fixture
def published(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> CapturingDisplayPublisher:
    """What a kernel would send to its notebook."""
    published = CapturingDisplayPublisher()  # type: ignore[no-untyped-call]
    monkeypatch.setattr(shell, "display_pub", published)
    monkeypatch.setattr(shell, "kernel", object(), raising=False)
    monkeypatch.setattr("caudal.results.notebook._QUIET_SECONDS", 0.0)
    return published


def test_a_kernel_shows_progress_and_removes_it(published: CapturingDisplayPublisher) -> None:
    assert len(caudal.run("movies", CASE, "q2")) == 1
    first, last = published.outputs[0], published.outputs[-1]
    assert "movies <progress" in first["data"]["text/html"]
    assert first["transient"]["display_id"] == last["transient"]["display_id"]
    assert last["update"]
    assert last["data"]["text/html"] == ""


def test_progress_can_be_switched_off(published: CapturingDisplayPublisher) -> None:
    caudal.run("movies", CASE, "q2", progress=False)
    caudal.sql("SELECT 1", progress=False)
    assert published.outputs == []


def test_without_a_kernel_nothing_is_shown(shell: InteractiveShell) -> None:
    assert "progress" not in shown(
        shell, f"import caudal; caudal.run('movies', {str(CASE)!r}, 'q2');"
    )
