"""The loop of `caudal shell`: read a statement or a command, execute it, show what it gives.

At a prompt a mistake is told and the next statement is read; Ctrl-C stops a query. Statements from
standard input end at the first mistake, with its exit status.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

import pyarrow as pa
import typer
from rich.console import Console

from caudal.application.adhoc import files_application
from caudal.cli.consoles import message_console
from caudal.cli.files import whole_file
from caudal.cli.formats import BINARY, ENDINGS, SCREEN, Format, encode, encode_rows
from caudal.cli.interrupts import forgive_interrupt
from caudal.cli.output import show_stream
from caudal.cli.progress import watch
from caudal.cli.shell.commands import help_text, parse_command
from caudal.cli.shell.suggestions import KnownNames
from caudal.cli.show import print_rejects
from caudal.embedded.explain import explain_query
from caudal.embedded.parts import StreamedResult
from caudal.embedded.session import TableSession
from caudal.errors import CaudalError, UsageError
from caudal.files.sources import Sources
from caudal.model import ADHOC, Application, ParameterValue
from caudal.results.answers import Result
from caudal.sql.adhoc import asker_mistakes, bind_values, with_adhoc_query

_FUNCTIONS = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_name ~ '^[a-z]'"
_KEYWORDS = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category != 'unreserved'"
_MORE_KEYWORDS = ("by", "first", "last", "nulls", "over", "partition", "values")


@dataclass
class Shell:
    """The state of a prompt: its tables, and how answers are written."""

    session: TableSession
    app: Application  # its tables can be named; without queries
    sources: Sources
    takes_files: bool  # whether a SELECT may name files
    values: Mapping[str, ParameterValue] = field(default_factory=dict)
    mode: Format = Format.TABLE
    timing: bool = True
    quiet: bool = False
    _output: "_AnswersFile | None" = None
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def close(self, error: BaseException | None = None) -> None:
        """Finish the output file; delete it after an error."""
        self._output = None
        self._open.__exit__(type(error) if error else None, error, None)

    def execute(self, text: str) -> bool:
        """Execute one statement or command; return whether to go on."""
        if not text.startswith("."):
            self._answer(text)
            return True
        name, argument = parse_command(text)
        if name == "quit":
            return False
        commands: dict[str, Callable[[str], None]] = {
            "tables": self._tables,
            "schema": self._schema,
            "explain": self._explain,
            "mode": self._mode,
            "output": self._redirect,
            "timing": self._timing,
            "help": lambda _: typer.echo(help_text()),
        }
        commands[name](argument)
        return True

    def catalog(self) -> KnownNames:
        """Return the names for completion."""
        tables = {name: list(schema) for name, schema in self.session.schemas(self.app).items()}
        keywords = [*self.session.names(_KEYWORDS), *_MORE_KEYWORDS]
        return KnownNames(tables, sorted(self.session.names(_FUNCTIONS)), sorted(keywords))

    def asked(self, select: str) -> Application:
        """Return the application whose only query is this SELECT."""
        given = {name: value for name, value in self.values.items() if f"${name}" in select}
        bound = bind_values(select, given, self.app.parameters)
        if not self.takes_files:
            return with_adhoc_query(self.app, bound)
        folder = self.sources.folder
        asked = files_application(
            bound,
            folder if folder != Path() else None,
            reading=self.sources.reading,
            frames=[table.name for table in self.app.tables],
        )
        named = {table.name for table in asked.tables}
        kept = [table for table in self.app.tables if table.name not in named]
        return replace(asked, tables=(*kept, *asked.tables))

    def _answer(self, select: str) -> None:
        application = self.asked(select)
        with asker_mistakes(application), contextlib.ExitStack() as running:
            with watch(Console(stderr=True), quiet=self.quiet) as progress:
                result = running.enter_context(
                    self.session.stream(application, self.sources, progress)
                )
            if self._output is not None:
                self._output.write(result, self.mode)
            elif self.mode in SCREEN:
                show_stream(result, self.mode, timed=self.timing)
            elif self.mode in BINARY:
                raise UsageError(f"{self.mode.value} cannot be shown: give .output FILE first")
            else:
                sys.stdout.buffer.writelines(encode_rows(result.parts, self.mode))
                sys.stdout.flush()
            print_rejects(result.rejects, message_console(), quiet=self.quiet)

    def _tables(self, argument: str) -> None:
        del argument
        for table in self.app.tables:
            typer.echo(f"{table.name}  {', '.join(table.files)}")
        for derived in self.app.derived:
            typer.echo(f"{derived.name}  {derived.origin}")
        if self.takes_files:
            typer.echo("A SELECT may name files too: FROM 'x.csv'", err=True)

    def _schema(self, argument: str) -> None:
        schemas = self.session.schemas(self.app)
        name = argument.rstrip(";").strip('"')
        if name and name not in schemas:
            raise UsageError(f"no table {name!r}: the tables are: {', '.join(schemas) or 'none'}")
        for table in [name] if name else schemas:
            typer.echo(table)
            widest = max(map(len, schemas[table]))
            for column, kind in schemas[table].items():
                typer.echo(f"  {column:<{widest}}  {kind}")

    def _explain(self, argument: str) -> None:
        if not argument:
            raise UsageError("write .explain SELECT …")
        with asker_mistakes():
            typer.echo(explain_query(self.asked(argument.rstrip(";")), ADHOC, {}))

    def _mode(self, argument: str) -> None:
        if argument and argument not in set(Format):
            raise UsageError(f"no format {argument!r}: choose one of {', '.join(Format)}")
        self.mode = Format(argument) if argument else self.mode
        if not argument:
            typer.echo(self.mode.value)

    def _timing(self, argument: str) -> None:
        if argument not in ("", "on", "off"):
            raise UsageError("write .timing on, or .timing off")
        self.timing = argument == "on" if argument else not self.timing

    def _redirect(self, argument: str) -> None:
        self.close()
        if argument and argument != "stdout":
            path = Path(argument).expanduser()
            self._output = _AnswersFile(path, self._open.enter_context(whole_file(path)))


@dataclass
class _AnswersFile:
    """The file of `.output`: it is in its place when it is finished, and not before."""

    path: Path
    file: IO[bytes]
    answers: int = 0

    def write(self, result: StreamedResult, mode: Format) -> None:
        form = ENDINGS.get(self.path.suffix.lower(), Format.CSV) if mode in SCREEN else mode
        if self.answers and form in (*BINARY, Format.JSON):
            raise UsageError(f"{self.path} holds an answer already: give another .output FILE")
        place = self.file.tell()
        try:
            self.file.writelines(_encoded(result, form))
        except BaseException:  # half an answer is none
            self.file.seek(place)
            self.file.truncate()
            raise
        self.answers += 1


def _encoded(result: StreamedResult, form: Format) -> Iterator[bytes]:
    if form not in BINARY:
        return encode_rows(result.parts, form)
    rows = pa.concat_tables(result.parts, promote_options="permissive")
    return encode(Result(result.name, result.title, rows), form)


def run_script(shell: Shell, texts: list[str]) -> None:
    """Execute statements until the first mistake."""
    try:
        for text in texts:
            if not shell.execute(text):
                break
    except BaseException as error:
        shell.close(error)
        raise
    shell.close()


def run_prompt(shell: Shell, texts: Iterator[str]) -> None:
    """Execute statements as they are typed; tell mistakes and go on."""
    try:
        for text in texts:
            try:
                if not shell.execute(text):
                    break
            except CaudalError as error:
                typer.echo(str(error), err=True)
            except KeyboardInterrupt:
                if not forgive_interrupt():
                    raise
                typer.echo("interrupted", err=True)
    except BaseException as error:
        shell.close(error)
        raise
    shell.close()
