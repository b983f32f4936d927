"""Output of answers: to the screen, to standard output, or to atomically written files."""

import contextlib
import csv
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import IO, TYPE_CHECKING

import pyarrow as pa

from caudal.cli.consoles import message_console, output_console
from caudal.cli.destination import Destination, choose_destination
from caudal.cli.elapsed import seconds_so_far
from caudal.cli.files import whole_file
from caudal.cli.formats import Format, encode, encode_rows, json_object
from caudal.cli.show import ROWS_ON_SCREEN, print_rejects, print_result, profile_tables
from caudal.errors import QueryError
from caudal.model import ADHOC, RejectedRow
from caudal.results.answers import Answers, Result, one_line
from caudal.results.rejects import Rejects

if TYPE_CHECKING:
    from caudal.embedded.parts import StreamedResult


def deliver(name: str, answers: Answers, destination: Destination, *, quiet: bool = False) -> None:
    """Write the answers, and print rejects, notes and times to standard error."""
    results = {name: untitled(result) for name, result in answers.results.items()}
    give(results, destination, quiet=quiet)
    console = message_console()
    for table in profile_tables(answers) if answers.operators else ():
        console.print(table)
    report(name, answers.rejects, quiet=quiet)


def report(name: str, rejects: Rejects, *, quiet: bool) -> None:
    """Print the rejected rows, and the time that the command has taken so far."""
    console = message_console()
    print_rejects(rejects, console, quiet=quiet)
    if not quiet:
        for note in rejects.notes if name != ADHOC else ():  # of files by name they are told before
            console.print(f"note: {one_line(note)}", highlight=False, markup=False)
        console.print(f"{name}: {seconds_so_far():.2f} s in all", highlight=False)


def require_all(failures: Mapping[str, QueryError]) -> None:
    """Raise an error if a query failed. Call it after all other answers are written."""
    if failures:
        raise QueryError("; ".join(dict.fromkeys(map(str, failures.values()))))


def give(results: Mapping[str, Result], destination: Destination, *, quiet: bool = False) -> None:
    """Write the answers to their destination."""
    form = destination.form
    if destination.is_screen:
        console = output_console()
        for result in results.values():
            print_result(result, console, form)
        sys.stdout.flush()
    elif destination.folder is not None:
        for name, result in results.items():
            with _opened(destination.path_of(name), quiet=quiet) as file:
                file.writelines(encode(result, form))
    else:
        with _opened(destination.file, quiet=quiet) as file:
            file.writelines(_one_file(results, form))
    forget_partial(results, destination)


def give_partial(result: Result, destination: Destination) -> None:
    """Write the rows of an answer that still grows into a file beside that of the answer."""
    path = destination.partial_path(result.name)
    if path is not None:
        with whole_file(path) as file:
            file.writelines(encode(result, Format.CSV))


def forget_partial(queries: Iterable[str], destination: Destination) -> None:
    """Delete the files with rows of answers that grew, also those that an earlier run left."""
    for name in queries:
        path = destination.partial_path(name)
        if path is not None:
            path.unlink(missing_ok=True)


def _one_file(results: Mapping[str, Result], form: Format) -> Iterator[bytes]:
    if form is Format.JSON and list(results) != [ADHOC]:
        return json_object({name: [result.table] for name, result in results.items()})
    return (piece for result in results.values() for piece in encode(result, form))


def give_stream(result: "StreamedResult", destination: Destination, *, quiet: bool = False) -> None:
    """Write an answer whose rows are still being computed."""
    if destination.is_screen:
        show_stream(result, destination.form)
        return
    with _opened(destination.path_of(result.name), quiet=quiet) as file:
        if destination.takes_all_at_once and result.name != ADHOC:
            file.writelines(json_object({result.name: result.parts}))
        else:
            file.writelines(encode_rows(result.parts, destination.form, result.name))


def ended_before_output(
    parts: Iterator[pa.Table], shown: contextlib.ExitStack, destination: Destination
) -> Iterator[pa.Table]:
    """Yield the parts of an answer, and end what is shown (progress) before a terminal gets rows.

    A table is printed when all parts are there, another format part by part.
    """
    at_first = not destination.is_screen and sys.stdout.isatty()
    for part in parts:
        if at_first:
            shown.close()
        yield part
    shown.close()


def show_stream(result: "StreamedResult", form: Format, *, timed: bool = True) -> None:
    """Print the first rows, and count the others without keeping them."""
    began, total, first = perf_counter(), 0, None
    for part in result.parts:
        total += part.num_rows
        if first is None:
            first = part
        elif first.num_rows < ROWS_ON_SCREEN:
            first = pa.concat_tables([first, part], promote_options="permissive")
    assert first is not None
    shown = Result(result.name, result.title, first, perf_counter() - began)
    print_result(untitled(shown), output_console(), form, total=total, timed=timed)
    sys.stdout.flush()


@contextlib.contextmanager
def _opened(path: Path | None, *, quiet: bool) -> Iterator[IO[bytes]]:
    """Yield a file that is written as a whole; standard output if there is no path."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.flush()
        return
    with whole_file(path) as file:
        yield file
    if not quiet:
        print(path, file=sys.stderr)


def checked_destination(form: Format | None, out: Path | None, queries: int) -> Destination:
    """Return the destination of this many answers. Call it first, so that errors come early."""
    return choose_destination(form, out, queries, on_terminal=sys.stdout.isatty())


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


def untitled(result: Result) -> Result:
    """Return a result without the title that repeats an ad hoc SELECT."""
    return replace(result, title="") if result.name == ADHOC else result
