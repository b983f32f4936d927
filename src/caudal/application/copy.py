"""Copy an application folder, to change the copy: `caudal new mine --from movies`."""

import shutil
import tempfile
from pathlib import Path

from caudal.errors import OutputError, UsageError
from caudal.model import Application

_PARTS = ("app.toml", "tables", "queries", "checks", "cases")


def copy_application(app: Application, folder: Path) -> None:
    """Copy the files of an application to a new folder, all of them or none."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UsageError(f"{folder} exists already: choose another name, or remove it first")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as scratch:
            copied = Path(scratch) / folder.name
            copied.mkdir()
            for part in _PARTS:
                _copy(app.folder / part, copied / part)
            copied.rename(folder)
    except OSError as error:
        raise OutputError(f"cannot write {folder}: {error.strerror}") from error


def _copy(source: Path, target: Path) -> None:
    """Copy the content only: an installed application may be read-only."""
    if source.is_dir():
        for path in sorted(source.rglob("*")):
            if path.is_file():
                _copy(path, target / path.relative_to(source))
    elif source.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
