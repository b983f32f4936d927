"""Find the files of a table in a folder."""

import os
from collections.abc import Sequence
from pathlib import Path, PurePath

from caudal.errors import DataError

_COMPRESSED = (".gz", ".zst", ".bz2", ".xz", ".zip")
_OTHERS = (".tsv", ".txt", ".xlsx", ".xls", ".jsonl", ".ndjson", ".parquet")  # beside .csv


def find_files(folder: Path, patterns: Sequence[str], table: str) -> list[Path]:
    """Return the files of a table, each once.

    Patterns are names or globs, absolute or relative to the data folder. `ratings.csv` also finds
    `ratings.csv.gz` and such, and `ratings.parquet`; `ratings.xlsx` also finds `ratings.csv`.
    """
    try:
        found = [path for pattern in patterns for path in _find(folder, pattern, table)]
    except OSError as error:
        shown = shown_path(Path(str(error.filename)))[:300]
        raise DataError(f"table {table}: cannot read {shown}: {error.strerror}") from error
    return list(dict.fromkeys(found))


def _find(folder: Path, pattern: str, table: str) -> list[Path]:
    """Return the matches of the first form of the pattern that matches any file."""
    stem = next((pattern.removesuffix(one) for one in _OTHERS if pattern.endswith(one)), None)
    other = pattern.removesuffix(".csv") + ".parquet" if stem is None else stem + ".csv"
    for form in (pattern, *(pattern + suffix for suffix in _COMPRESSED), other):
        if matches := _match(folder, form):
            return matches
    if (folder / pattern).exists():
        raise DataError(f"{shown_path(folder / pattern)} is not a regular file: copy it to one")
    where = f" in {folder}" if folder.is_dir() else f" because there is no folder {folder}"
    raise DataError(
        f"table {table}: no file {pattern!r}{'' if Path(pattern).is_absolute() else where}; "
        f"point to it with --data DIR or --file {table}=PATH"
    )


def _match(folder: Path, pattern: str) -> list[Path]:
    """Return the file with exactly this name, else the sorted matches of the glob."""
    if (exact := folder / pattern).is_file():
        return [exact]
    anchor = Path(pattern).anchor
    glob = Path(pattern).relative_to(anchor)
    return sorted(path for path in (folder / anchor).glob(str(glob)) if path.is_file())


def shown_path(path: PurePath) -> str:
    """Return a path as valid text; bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
