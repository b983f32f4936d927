"""The folder in which this user's programs keep what they can make again."""

import os
from pathlib import Path


def cache_folder() -> Path | None:
    """Return Caudal's cache folder, which need not exist; None if the user has no home."""
    given = os.environ.get("XDG_CACHE_HOME")
    if given and Path(given).is_absolute():
        return Path(given) / "caudal"
    try:
        return Path.home() / ".cache" / "caudal"
    except RuntimeError:
        return None
