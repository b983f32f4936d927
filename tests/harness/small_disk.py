"""A disk of a few megabytes, which a test can fill. Only root may mount one."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.harness.seaweed import refuse


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Two megabytes at a new folder of this name."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        refuse("this machine lets nobody mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path) -> Path:
    """Use up all space; return the file to delete."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                pass
    return ballast
