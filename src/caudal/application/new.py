"""Write a first application folder for some CSV files: `caudal new`.

Each file becomes a table with typed columns (sniff.py), one or two example queries (draft.py), and
the rows of a first case. The folder is created atomically: complete or not at all.
"""

import csv
import itertools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from caudal.application import draft as drafting
from caudal.application.folder import load_application
from caudal.application.sniff import sample, sniff
from caudal.embedded.engine import run
from caudal.errors import DataError, OutputError, UsageError
from caudal.files.find import shown_path
from caudal.files.sources import Sources
from caudal.results.values import json_bytes

_SUFFIXES = (".csv", ".gz", ".zst", ".parquet")
_CASE = "first_rows"
_CASE_ROWS = 5


def write_application(folder: Path, files: Sequence[Path]) -> list[Path]:
    """Write an application folder with one table per file; return the written paths.

    Runs find the CSV files with `--data` set to their `data_folder`.
    """
    _check_request(folder, files)
    _check_paths([folder, *files])
    samples = {path: sample(path) for path in files}
    root = data_folder(files)
    tables = [_draft(path, root, rows) for path, rows in samples.items()]
    first_rows = {
        table.file: rows.slice(0, _CASE_ROWS)
        for table, rows in zip(tables, samples.values(), strict=True)
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


def data_folder(files: Sequence[Path]) -> Path:
    """Return the innermost folder that contains all the files."""
    parents = (path.absolute().parent.parts for path in files)
    shared = itertools.takewhile(lambda parts: len(set(parts)) == 1, zip(*parents, strict=False))
    return Path(*(parts[0] for parts in shared))


def _check_request(folder: Path, files: Sequence[Path]) -> None:
    if not files:
        raise UsageError("name at least one CSV file: each becomes a table")
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UsageError(f"{folder} exists already: choose another name, or remove it first")
    names: dict[str, Path] = {}
    for path in files:
        if not path.is_file():
            raise DataError(f"no file {path}: name existing CSV files")
        if path.stat().st_size == 0:
            raise DataError(f"{path} is empty: a CSV file begins with a line of column names")
        name = _table_name(path)
        if name in names:
            raise UsageError(f"{names[name]} and {path} would both be table {name!r}: rename one")
        names[name] = path


def _check_paths(paths: Sequence[Path]) -> None:
    """Raise UsageError for a path that is not UTF-8: app.toml holds the names in UTF-8."""
    for path in paths:
        if shown_path(path) != str(path):
            raise UsageError(f"the name {shown_path(path)} is not UTF-8: rename it first")


def _draft(path: Path, root: Path, rows: pa.Table) -> drafting.DraftTable:
    """Return the table of a file. Its file name has no compression suffix: readers try all."""
    name = f"{_stem(path)}.csv" if path.suffix in _SUFFIXES else path.name
    file = path.absolute().parent.relative_to(root) / name
    columns = drafting.draft_columns(sniff(rows))
    return drafting.DraftTable(_table_name(path), file.as_posix(), tuple(columns))


def _stem(path: Path) -> str:
    while path.suffix in _SUFFIXES:
        path = path.with_suffix("")
    return path.name


def _table_name(path: Path) -> str:
    return drafting.table_name(_stem(path))


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _write_case(folder: Path, first_rows: Mapping[str, pa.Table]) -> None:
    """Write the first rows of each file and the answers of the queries over them."""
    case = folder / "cases" / _CASE
    for name, rows in first_rows.items():
        path = case / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(rows.column_names)
            writer.writerows(row.values() for row in rows.to_pylist())
    answers = run(load_application(folder), Sources(case))
    expected = {
        "about": "The first rows of each file.",
        "answers": {name: result.rows() for name, result in answers.items()},
        "rejects": answers.rejects.counts(),
    }
    (case / "expected.json").write_bytes(json_bytes(expected))
