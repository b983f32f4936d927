"""Folders of workers: own, locked, removed, and those of killed workers swept."""

import subprocess
import sys
from pathlib import Path

from caudal.worker.workspace import own_folder

_KILLED = """
import os, sys
from pathlib import Path
from caudal.worker.workspace import own_folder
with own_folder(Path(sys.argv[1])) as folder:
    (folder / "spilled").write_bytes(b"much")
    os._exit(9)
"""


def test_a_folder_lives_as_long_as_its_worker(tmp_path: Path) -> None:
    with own_folder(tmp_path) as one, own_folder(tmp_path) as other:
        assert one != other
        assert len(list(tmp_path.iterdir())) == 2
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_worker_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("nobody touches this")
    subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)], check=False)
    (left,) = tmp_path.glob("caudal-worker-*")
    with own_folder(tmp_path) as folder:
        assert not left.exists()
        assert folder.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
