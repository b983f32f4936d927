"""What the processes of a cluster write is for their own user: folders 0700, files 0600.

A stranger on the same machine who could open a lock file could hold it, and so keep a process from
starting; secrets, batches, results and what spills are none of their business either.
"""

import os
from pathlib import Path

from caudal.errors import UsageError

_OTHERS_WRITE = 0o002


def keep_private() -> None:
    """From now on all that this process makes, and its children make, is for this user only."""
    os.umask(0o077)


def private_folder(path: Path) -> None:
    """Make a folder that only this user can enter; one that is there becomes so."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o700)


def private_file(path: Path) -> None:
    """Make an empty file that only this user can open; one that is there becomes so."""
    path.touch(mode=0o600)
    path.chmod(0o600)


def require_not_everyones(folder: Path) -> None:
    """Refuse a folder in which everybody may replace what is there."""
    if folder.stat().st_mode & _OTHERS_WRITE:
        raise UsageError(f"everybody may write to {folder}: run `chmod o-w {folder}` first")
