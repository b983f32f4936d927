"""The files of a dataset as local paths that DuckDB can open.

A dataset in a folder is read in place. Files of one elsewhere are fetched, checked, and deleted
afterwards: DuckDB would need an extension to read them from S3.
"""

import contextlib
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from caudal.datasets import keys
from caudal.datasets.contents import HeldFile
from caudal.datasets.files import read_file
from caudal.datasets.shelf import Shelf
from caudal.errors import FormatError, UsageError

_GLOB = frozenset("*?[")


@contextlib.contextmanager
def local_files(shelf: Shelf, tables: Collection[str]) -> Iterator[Mapping[str, Sequence[Path]]]:
    """Yield the files of some tables, in the order of their rows."""
    held = {name: files for name, files in shelf.contents.tables.items() if name in tables}
    with contextlib.ExitStack() as stack:
        if shelf.folder is not None:
            root = stack.enter_context(_plain_folder(shelf.folder.absolute()))
            yield {name: _in_place(root, name, files) for name, files in held.items()}
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="caudal-")))
            yield {name: _fetched(shelf, folder, name, files) for name, files in held.items()}


def paths_in_place(shelf: Shelf, table: str) -> list[Path]:
    """Return the files of a table in a folder; raise UsageError for a dataset elsewhere."""
    if shelf.folder is None:
        raise UsageError(
            f"{shelf.place} is no local folder: take the rows with to_arrow(), or read "
            f"{shelf.place}/tables/{table} as a Delta table"
        )
    return _in_place(shelf.folder.absolute(), table, shelf.contents.tables[table])


@contextlib.contextmanager
def _plain_folder(folder: Path) -> Iterator[Path]:
    """Yield a name of the folder that DuckDB does not take for a pattern."""
    if not _GLOB & set(str(folder)):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="caudal-") as place:
        link = Path(place) / "shelf"
        link.symlink_to(folder)
        yield link


def _in_place(root: Path, table: str, files: Sequence[HeldFile]) -> list[Path]:
    paths = []
    for file in files:
        path = root / keys.file_key(table, file.path)
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            size = -1
        if size != file.bytes:
            state = "missing" if size < 0 else "damaged"
            raise FormatError(f"{path} is {state}: restore it from a copy of the dataset")
        paths.append(path)
    return paths


def _fetched(shelf: Shelf, folder: Path, table: str, files: Sequence[HeldFile]) -> list[Path]:
    def fetch(place: int) -> Path:
        path = folder / f"{table}-{place:08}.parquet"
        path.write_bytes(read_file(shelf.store, table, files[place]))
        return path

    with ThreadPoolExecutor(shelf.store.parallel_requests) as pool:
        return list(pool.map(fetch, range(len(files))))
