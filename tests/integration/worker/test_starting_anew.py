"""A worker that holds too much memory and has no medic."""

import subprocess
import sys
from pathlib import Path

from tests.harness.waiting import until

LIFE = """
import os, sys
from caudal.cli.main import main
from caudal.worker.settings import WorkerSettings
from tests.harness.waiting import until
if not os.environ.get("SECOND_LIFE"):
    os.environ["SECOND_LIFE"] = "yes"
    WorkerSettings.idle_bytes = lambda self, warm: 1
main()
"""


def test_without_a_medic_it_starts_itself_anew(tmp_path: Path) -> None:
    """A real process: the same pid, ready twice, and it still heeds a wish to stop."""
    words = tmp_path / "words"
    with words.open("wb") as stream:
        child = subprocess.Popen(
            [sys.executable, "-c", LIFE, "worker", "--store", str(tmp_path / "store"),
             "--broker", "memory:", "--workspace", str(tmp_path)],
            stdout=stream, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        until(lambda: words.read_text().count('"event": "ready"') == 2 or child.poll() is not None)
        child.terminate()
        assert child.wait() == 0
    finally:
        child.kill()
        child.wait()
    text = words.read_text()
    assert "replaced: it holds too much memory while idle" in text
    assert text.count('"event": "stopped"') == 2
    assert list(tmp_path.glob("caudal-worker-*")) == []
