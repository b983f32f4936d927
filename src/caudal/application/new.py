"""Write a first application folder for some CSV files: `caudal new`.

Each file becomes a table with typed columns (sniff.py), one or two example queries (draft.py), and
the rows of a first case. The folder is created atomically: complete or not at all.
"""

import itertools
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath, PurePosixPath

import pyarrow as pa

from caudal.application import draft as drafting
from caudal.application.case_rows import write_rows
from caudal.application.examine import Examined, examine
from caudal.application.folder import load_application
from caudal.embedded.engine import run
from caudal.errors import DataError, OutputError, UsageError
from caudal.files.compressed import COMPRESSION
from caudal.files.find import shown_path
from caudal.files.inputs import InputFile
from caudal.files.places import S3, LocalPlace, Place, find_objects
from caudal.files.reading import USUAL
from caudal.files.sources import Sources
from caudal.model import Reading
from caudal.results.values import json_bytes

_SUFFIXES = (".csv", ".tsv", ".xlsx", ".xls", ".jsonl", ".ndjson", ".parquet")
_CASE = "first_rows"
_CASE_ROWS = 5


def write_application(
    folder: Path, files: Sequence[Path | str], reading: Reading = USUAL
) -> list[Path]:
    """Write an application folder with one table per file; return the written paths.

    Runs find the files with `--data` set to their `data_folder`; an object in S3 is named with
    `--file`. What `reading` does not say about the files is found in them, and written into
    app.toml.
    """
    places = [_place(file) for file in files]
    _check_request(folder, places)
    _check_paths([folder, *(place.path for place in places)])
    found = {place: examine([InputFile(place, reading)]) for place in places}
    root = data_folder(files)
    tables = [_draft(place, root, one) for place, one in found.items()]
    first_rows = {
        table: one.rows.slice(0, _CASE_ROWS)
        for table, one in zip(tables, found.values(), strict=True)
    }
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as scratch:
            draft = Path(scratch) / folder.name
            _write(draft, drafting.texts(folder.name, tables))
            _write_case(draft, first_rows)
            written = sorted(path for path in draft.rglob("*") if path.is_file())
            draft.rename(folder)
            return [folder / path.relative_to(draft) for path in written]
    except OSError as error:
        raise OutputError(f"cannot write {folder}: {error.strerror}") from error


def data_folder(files: Sequence[Path | str]) -> Path:
    """Return the innermost folder that contains all the local files."""
    local = (Path(file) for file in files if not _is_object(file))
    parents = (path.absolute().parent.parts for path in local)
    shared = itertools.takewhile(lambda parts: len(set(parts)) == 1, zip(*parents, strict=False))
    return Path(*(parts[0] for parts in shared))


def needed_options(files: Sequence[Path | str]) -> list[str]:
    """Return the options with which a run of the application finds the files."""
    local = [file for file in files if not _is_object(file)]
    options = ["--data", str(data_folder(local))] if local else []
    for url in (str(file) for file in files if _is_object(file)):
        options += ["--file", f"{_table_name(PurePosixPath(url))}={url}"]
    return options


def _is_object(file: Path | str) -> bool:
    return isinstance(file, str) and file.startswith(S3)


def _place(file: Path | str) -> Place:
    if not _is_object(file):
        return LocalPlace(Path(file))
    found = find_objects(str(file))
    if len(found) > 1:
        raise UsageError(f"{file} names {len(found):,} objects: name one, which becomes a table")
    return found[0]


def _check_request(folder: Path, files: Sequence[Place]) -> None:
    if not files:
        raise UsageError("name at least one CSV file: each becomes a table")
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UsageError(f"{folder} exists already: choose another name, or remove it first")
    names: dict[str, str] = {}
    for place in files:
        if isinstance(place, LocalPlace) and not place.path.is_file():
            raise DataError(f"no file {place.path}: name existing CSV files")
        if place.size() == 0:
            raise DataError(f"{place.name} is empty: a CSV file begins with a line of column names")
        name = _table_name(place.path)
        if name in names:
            both = f"{names[name]} and {place.name}"
            raise UsageError(f"{both} would both be table {name!r}: rename one")
        names[name] = place.name


def _check_paths(paths: Sequence[PurePath]) -> None:
    """Raise UsageError for a path that is not UTF-8: app.toml holds the names in UTF-8."""
    for path in paths:
        if shown_path(path) != str(path):
            raise UsageError(f"the name {shown_path(path)} is not UTF-8: rename it first")


def _draft(place: Place, root: Path, found: Examined) -> drafting.DraftTable:
    """Return the table of a file. Its file name has no compression suffix: readers try all."""
    path = place.path
    bare = path.with_suffix("") if path.suffix in COMPRESSION else path
    name = f"{bare.stem}.csv" if bare.suffix == ".parquet" else bare.name
    file = Path(name)
    if isinstance(place, LocalPlace):
        file = place.path.absolute().parent.relative_to(root) / name
    columns = tuple(drafting.draft_columns(found.columns))
    return drafting.DraftTable(_table_name(path), file.as_posix(), columns, _pinned(found))


def _pinned(found: Examined) -> Reading:
    """Return how the file is read, where that is not usual; later files may say it less clearly."""
    (file,) = found.files
    if file.kind != "text":
        return found.reading
    text, form = file.text, file.text.form
    return replace(
        found.reading,
        delimiter=None if form.delimiter == "," else form.delimiter,
        encoding=None if text.has_mark or text.encoding == "utf-8" else text.encoding,
        header=None if form.has_header else False,
        skip=form.before or None,
    )


def _stem(path: PurePath) -> str:
    bare = path.with_suffix("") if path.suffix in COMPRESSION else path
    return bare.stem if bare.suffix in _SUFFIXES else bare.name


def _table_name(path: PurePath) -> str:
    return drafting.table_name(_stem(path))


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _write_case(folder: Path, first_rows: Mapping[drafting.DraftTable, pa.Table]) -> None:
    """Write the first rows of each file and the answers of the queries over them."""
    case = folder / "cases" / _CASE
    for table, rows in first_rows.items():
        write_rows(case / table.file, rows, table.reading)
    answers = run(load_application(folder), Sources(case))
    expected = {
        "about": "The first rows of each file.",
        "answers": {name: result.rows() for name, result in answers.items()},
        "rejects": answers.rejects.counts(),
    }
    (case / "expected.json").write_bytes(json_bytes(expected))
