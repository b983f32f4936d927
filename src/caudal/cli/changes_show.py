"""Answers of `caudal watch`: what changed since the one before."""

from datetime import UTC, datetime

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from caudal.datasets.changes import Changed, changed_rows
from caudal.results.answers import Result, one_line, show
from caudal.results.values import json_value, python_values

_ROWS_ON_SCREEN = 50
_MOST_GONE = 20


def print_changes(
    version: tuple[int, int], old: Result | None, new: Result, console: Console
) -> None:
    """Print an answer; rows that the one before lacked are marked +, rows that are gone -.

    `version` is its number and its time in milliseconds.
    """
    changed = Changed((), ()) if old is None else changed_rows(old.table, new.table)
    number, milliseconds = version
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    told = "" if old is None else f": {_told(changed)}"
    heading = f"version {number} ({moment:%Y-%m-%d %H:%M:%S} UTC){told}"
    console.print(Text(heading, style="bold"), soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ["", *new.table.column_names]:
        table.add_column(Text(one_line(name)), overflow="fold")
    added = set(changed.added)
    for place, row in enumerate(_rows(new)[:_ROWS_ON_SCREEN]):
        mark = "+" if place in added else ""
        table.add_row(Text(mark), *row, style="bold" if mark else "")
    gone = _rows(old) if old is not None else []
    for place in changed.gone[:_MOST_GONE]:
        table.add_row(Text("-"), *gone[place], style="dim")
    console.print(table)
    if len(new) > _ROWS_ON_SCREEN:
        console.print(f"{len(new):,} rows in all", style="dim", highlight=False)


def changes_line(version: int, old: Result | None, new: Result) -> bytes:
    """Return an answer and its changes as one line of JSON."""
    changed = Changed((), ()) if old is None else changed_rows(old.table, new.table)
    gone = [] if old is None else [old.rows()[place] for place in changed.gone]
    line = {"version": version, "rows": new.rows(), "added": list(changed.added), "gone": gone}
    return msgspec.json.encode(json_value(line)) + b"\n"


def _rows(result: Result) -> list[tuple[Text, ...]]:
    columns = [
        [Text(one_line(show(value))) for value in python_values(column)]
        for column in result.table.columns
    ]
    return list(zip(*columns, strict=True))


def _told(changed: Changed) -> str:
    if not changed:
        return "the answer is the same"
    return f"{_count(len(changed.added))} new or changed, {len(changed.gone):,} gone"


def _count(number: int) -> str:
    return f"{number:,} row{'' if number == 1 else 's'}"
