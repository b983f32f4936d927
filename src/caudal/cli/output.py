"""Output of answers: to the screen, to standard output, or to atomically written files."""

import contextlib
import csv
import io
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from caudal.cli.files import whole_file
from caudal.cli.formats import BINARY, Format, encode, write_results
from caudal.cli.show import print_rejects, print_result, profile_tables
from caudal.errors import QueryError, UsageError
from caudal.model import ADHOC, RejectedRow
from caudal.results.answers import Answers, Result
from caudal.results.values import json_bytes


def deliver(name: str, answers: Answers, form: Format, out: Path | None) -> None:
    """Write the answers, and print rejects, notes and times to standard error."""
    give({name: _untitled(result) for name, result in answers.results.items()}, form, out)
    console = Console(stderr=True, width=None if sys.stderr.isatty() else 160)
    for table in profile_tables(answers) if answers.operators else ():
        console.print(table)
    print_rejects(answers.rejects, console)
    console.print(f"{name}: {answers.seconds:.2f} s", highlight=False)


def require_all(failures: Mapping[str, QueryError]) -> None:
    """Raise an error if a query failed. Call it after all other answers are written."""
    if failures:
        raise QueryError("; ".join(dict.fromkeys(map(str, failures.values()))))


def give(results: Mapping[str, Result], form: Format, out: Path | None) -> None:
    """Write the answers to `out`, or to standard output."""
    if out is not None:
        for path in write_results(results, out, form):
            print(path, file=sys.stderr)
    elif form is Format.TABLE:
        console = Console(soft_wrap=False, width=None if sys.stdout.isatty() else 160)
        for result in results.values():
            print_result(result, console)
    elif form is Format.JSON:
        rows = {name: result.rows() for name, result in results.items()}
        sys.stdout.buffer.write(json_bytes(rows))
    else:
        for result in results.values():
            sys.stdout.buffer.write(encode(result, form))
    sys.stdout.flush()


def checked_format(form: Format | None, out: Path | None, queries: int) -> Format:
    """Return the format for this many results. Call it first, so that errors come early."""
    form = form or Format.TABLE
    if out is not None or form in (Format.TABLE, Format.JSON):
        return form
    if queries != 1:
        raise UsageError(
            f"--format {form.value} gives one file per query: add --out DIR, or choose one with -q"
        )
    if form in BINARY and sys.stdout.isatty():
        raise UsageError(
            f"--format {form.value} cannot go to a terminal: add --out DIR, or redirect"
        )
    return form


@contextlib.contextmanager
def reject_file(path: Path | None) -> Iterator[Callable[[RejectedRow], None] | None]:
    """Yield a sink that writes rejected rows as CSV; None without a path."""
    if path is None:
        yield None
        return
    with whole_file(path) as file, io.TextIOWrapper(file, "utf-8", newline="") as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["table", "file", "line", "reason"])
        yield lambda row: writer.writerow([row.table, row.file, row.line, row.reason])


def _untitled(result: Result) -> Result:
    return replace(result, title="") if result.name == ADHOC else result
