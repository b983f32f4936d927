"""The code of tasks on executors: installed there, or shipped as an archive.

The archive holds Caudal with its compiled kernels, and the packages that it needs. An executor
uses its own packages first, since Spark has loaded some of them already; Caudal's own modules come
from the archive. Either way the fingerprint must be the driver's (bootstrap.py).
"""

import importlib.metadata
import re
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
_ROOT = Path(__file__).parents[1]


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
    task, also those that come later, so it stays in the user's cache."""
    if not options.ship:
        return Shipped()
    name = f"caudal-{fingerprint()['code']}"
    archive = kept_archive((cache_folder() or Path(tempfile.gettempdir())) / "spark", name)
    side.run(lambda: side.session.addArtifacts(f"{archive}#{name}", archive=True))
    return Shipped(name)


def kept_archive(folder: Path, name: str) -> Path:
    """Return the archive of this code; write it if it is not there, and delete old ones."""
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"{name}.zip"
    if not archive.exists():
        with tempfile.TemporaryDirectory(dir=folder) as beside:
            write_archive(Path(beside) / name)
            (Path(beside) / name).replace(archive)
    others = sorted(folder.glob("caudal-*.zip"), key=lambda path: path.stat().st_mtime)
    for old in others[:-_ARCHIVES_KEPT]:
        old.unlink(missing_ok=True)
    return archive


def write_archive(path: Path) -> None:
    """Write Caudal and its packages as a zip file."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for file in sorted(_ROOT.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.write(file, Path("caudal", "caudal", file.relative_to(_ROOT)))
        for file, place in _package_files():
            archive.write(file, Path("packages", place))


def _package_files() -> Iterator[tuple[Path, Path]]:
    """Yield the files of the packages that tasks import, with their places."""
    for package in _PACKAGES:
        try:
            listed = importlib.metadata.files(package) or ()
        except importlib.metadata.PackageNotFoundError:
            continue
        for one in listed:
            file = Path(str(one.locate()))
            is_outside = ".." in one.parts or re.search(
                r"(^|/)(tests?|include|__pycache__)/", str(one)
            )
            if not is_outside and file.is_file():
                yield file, Path(str(one))
