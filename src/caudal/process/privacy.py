"""Private files: what the processes of a cluster write is for their user only (0700, 0600).

Another user of the machine who could open a lock file could hold it, and so keep a process from
starting. Secrets, batches, results and spilled data must also stay private.
"""

import os
from pathlib import Path

from caudal.errors import UsageError

_OTHERS_WRITE = 0o002


def keep_private() -> None:
    """Make all files that this process and its children create from now on private to this user."""
    os.umask(0o077)


def private_folder(path: Path) -> None:
    """Create a folder that only this user can enter; change an existing one."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o700)


def private_file(path: Path) -> None:
    """Create an empty file that only this user can open; change an existing one."""
    path.touch(mode=0o600)
    path.chmod(0o600)


def require_not_everyones(folder: Path) -> None:
    """Raise UsageError for a folder in which every user may replace files."""
    if folder.stat().st_mode & _OTHERS_WRITE:
        raise UsageError(f"every user may write to {folder}: run `chmod o-w {folder}` first")
