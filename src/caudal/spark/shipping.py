"""The code of tasks on executors: installed there, or shipped as an archive.

The archive holds Caudal with its compiled kernels, and the packages that it needs. An executor
uses its own packages first, since Spark has loaded some of them already; Caudal's own modules come
from the archive. Either way the fingerprint must be the driver's (bootstrap.py).
"""

import atexit
import hashlib
import importlib.metadata
import os
import re
import shutil
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from caudal.run_options import SparkOptions
from caudal.spark import bootstrap
from caudal.spark.fingerprint import fingerprint
from caudal.spark.session import SparkSide
from caudal.spark.tasks import Work
from caudal.user_cache import cache_folder

_PACKAGES = ("duckdb", "msgspec", "numpy", "pyarrow", "sqlglot", "xxhash", "obstore")
_UNWANTED = re.compile(r"(^|/)(\.\.|tests?|include|__pycache__)/")
_ARCHIVES_KEPT = 3
_DIGITS = 16
_ROOT = Path(__file__).parents[1]
_SENT: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()  # names of archives, by session


@dataclass(frozen=True)
class Shipped:
    """How executors find the code. `archive` is the folder that they unpacked; empty: installed."""

    archive: str = ""

    def task(self, name: str, work: Work) -> Any:
        """Return the function of a task, for `mapInArrow` and the iterator form of
        `applyInArrow`."""
        from pyspark import cloudpickle

        cloudpickle.register_pickle_by_value(bootstrap)
        encoded = msgspec.msgpack.encode(work)
        return bootstrap.task_function(name, encoded, fingerprint(), self.archive)


def shipped_code(side: SparkSide, options: SparkOptions) -> Shipped:
    """Send the code to executors if that is asked. Executors fetch the archive when they start a
    task, also those that come later, so it stays in a folder of the user. A client of Connect would
    upload it for every run of its session."""
    if not options.ship:
        return Shipped()
    name = archive_name()
    sent = _SENT.setdefault(side.session, set())
    if name not in sent:
        archive = kept_archive(_private_folder(), name)
        side.run(lambda: side.session.addArtifacts(f"{archive}#{name}", archive=True))
        sent.add(name)
    return Shipped(name)


@cache
def archive_name() -> str:
    """Return the name of the archive. Another one holds something else: other files of Caudal or
    versions of packages, or packages for another Python or kind of machine."""
    held = [str(sys.implementation.cache_tag), sysconfig.get_platform(), *_versions()]
    for file in _own_files():
        own = hashlib.sha256(file.read_bytes()).hexdigest()
        held.append(f"{file.relative_to(_ROOT).as_posix()} {own}")
    digest = hashlib.sha256("\n".join(held).encode()).hexdigest()
    return f"caudal-{digest[:_DIGITS]}"


def kept_archive(folder: Path, name: str) -> Path:
    """Return the archive of this name; write it if it is not there, and delete old ones."""
    archive = folder / f"{name}.zip"
    if not archive.exists():
        with tempfile.TemporaryDirectory(dir=folder) as beside:
            write_archive(Path(beside) / name)
            (Path(beside) / name).replace(archive)
    others = sorted(folder.glob("caudal-*.zip"), key=lambda path: path.stat().st_mtime)
    for old in others[:-_ARCHIVES_KEPT]:
        old.unlink(missing_ok=True)
    return archive


@cache
def _private_folder() -> Path:
    """Make the folder of archives, which only this user may read or change. It is in the user's
    cache; if nothing can be kept there, it is one of this process."""
    kept = cache_folder()
    try:
        if kept is not None:
            return own_folder(kept / "spark")
    except OSError:
        pass
    folder = tempfile.mkdtemp(prefix="caudal-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def own_folder(folder: Path) -> Path:
    """Make a folder that only this user may read or change; raise OSError if it is another's."""
    folder.mkdir(parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    folder.chmod(0o700)
    return folder


def write_archive(path: Path) -> None:
    """Write Caudal and its packages as a zip file."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for file in _own_files():
            archive.write(file, Path("caudal", "caudal", file.relative_to(_ROOT)))
        for file, place in _package_files():
            archive.write(file, Path("packages", place))


def _own_files() -> Iterator[Path]:
    """Yield the files of Caudal."""
    for file in sorted(_ROOT.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            yield file


def _versions() -> Iterator[str]:
    """Yield the packages that are here, with their versions."""
    for package in _PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            yield f"{package} {importlib.metadata.version(package)}"


def _package_files() -> Iterator[tuple[Path, Path]]:
    """Yield the files of the packages that tasks import, with their places."""
    for package in _PACKAGES:
        try:
            listed = importlib.metadata.files(package) or ()
        except importlib.metadata.PackageNotFoundError:
            continue
        for one in listed:
            file = Path(str(one.locate()))
            if not _UNWANTED.search(str(one)) and file.is_file():
                yield file, Path(str(one))
