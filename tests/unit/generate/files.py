"""Generated files, and how to read them with nothing but the standard library."""

import csv
from functools import cache
from pathlib import Path

import pytest

from caudal.generate import generate

Row = dict[str, str]


def generated(app: str, seed: int, factory: pytest.TempPathFactory) -> Path:
    """The folder with an application's files."""
    out = factory.mktemp(app)
    generate(app, scale=0.01, seed=seed, out=out)
    return out


@cache
def records(path: Path) -> list[list[str]]:
    """All records of a file, the header first."""
    csv.field_size_limit(1 << 30)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, strict=True))


@cache
def rows(path: Path) -> list[Row]:
    """The records that have as many fields as the header."""
    header, *lines = records(path)
    return [dict(zip(header, line, strict=True)) for line in lines if len(line) == len(header)]
