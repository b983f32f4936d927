"""Options shared by several commands, each declared once.

`QueryOptions` holds the options of every command that reads files and gives answers. Such a command
takes one parameter `asking` and is decorated with `with_asking`. Typer then sees one option for
each field.
"""

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from caudal.cli.formats import Format
from caudal.cli.parameter_values import convert
from caudal.errors import UsageError
from caudal.files.reading import checked
from caudal.files.sources import Sources
from caudal.model import Application, ParameterValue, Reading, RejectedRow
from caudal.run_options import Engine, RunOptions, SparkInputs, SparkOptions
from caudal.sizes import parse_bytes
from caudal.user_cache import cache_folder

_LEAST_BATCH_BYTES, _MOST_BATCH_BYTES = 4 << 10, 1 << 30

ON_SPARK = ("remote", "master", "inputs", "ship")  # options of the Spark engine only

Returned = TypeVar("Returned")

AppArgument = Annotated[str, typer.Argument(help="A shipped application, or a folder's path.")]
ParamOption = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="NAME=VALUE", help="A value for a $NAME of the queries."),
]
SentimentOption = Annotated[
    str | None,
    typer.Option("--sentiment", help="`lexicon`, or `transformers:DIR` for a local model."),
]
EngineOption = Annotated[
    Engine, typer.Option("--engine", help="The engine that executes the queries.")
]
ProgressStoreOption = Annotated[
    str | None,
    typer.Option("--store", help="DIR or s3://… for the progress of --engine split."),
]
FromOption = Annotated[
    str | None,
    typer.Option("--from", help="Ask a dataset (a folder or s3://…) instead of files."),
]
DatasetOption = Annotated[
    str | None,
    typer.Option(
        "--dataset", metavar="NAME", help="A dataset of the cluster: NAME, or OWNER/NAME."
    ),
]
AsOfOption = Annotated[
    int | None, typer.Option("--as-of", min=0, help="The version of the dataset to ask.")
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Continue a killed run from its progress in --store.")
]


@dataclass(frozen=True)
class ReadingOptions:
    """Options about how files are written: the same as in app.toml (docs/reference/files.md)."""

    format_: Annotated[
        str | None,
        typer.Option(
            "--input", help="What the files hold: csv, json or excel.", show_default="found"
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option(
            "--delimiter", help="What separates fields: `;`, `tab`.", show_default="found"
        ),
    ] = None
    quote: Annotated[
        str | None, typer.Option("--quote", help="The quote of fields.", show_default='"')
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option("--encoding", help="The encoding: cp1252, utf-16.", show_default="found"),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether the names stand first.",
                     show_default="found"),
    ] = None  # fmt: skip
    names: Annotated[
        str | None, typer.Option("--names", help="The names of all columns: a,b,c.")
    ] = None
    skip: Annotated[
        int | None,
        typer.Option("--skip", help="Lines to leave out at the beginning.", show_default="found"),
    ] = None
    comment: Annotated[
        str | None, typer.Option("--comment", help="Leave out lines that begin with this.")
    ] = None
    decimal: Annotated[
        str | None,
        typer.Option("--decimal", help="The decimal mark: `,` or `.`.", show_default="found"),
    ] = None
    date_format: Annotated[
        str | None,
        typer.Option(
            "--date-format", help="How dates are written: %d/%m/%Y.", show_default="found"
        ),
    ] = None
    sheet: Annotated[
        str | None,
        typer.Option("--sheet", help="The sheet of a workbook.", show_default="the first"),
    ] = None
    filename: Annotated[bool, typer.Option("--filename", help="Add a column `filename`.")] = False
    union_by_name: Annotated[
        bool,
        typer.Option("--union-by-name", help="Columns that a file does not have are null."),
    ] = False

    def reading(self) -> Reading:
        """Return the options, checked."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        given["format"] = given.pop("format_")
        given["names"] = tuple(self.names.split(",")) if self.names else None
        return checked(Reading(**given))


@dataclass(frozen=True)
class QueryOptions:
    """Options for the input files, how to read them, and how to write the answers."""

    data: Annotated[
        Path | None,
        typer.Option("--data", "-d", help="The folder with the files.", show_default="."),
    ] = None
    file: Annotated[
        list[str] | None,
        typer.Option("--file", metavar="TABLE=PATH", help="Other files (or a glob) for one table."),
    ] = None
    form: Annotated[
        Format | None,
        typer.Option("--format", help="How to write the answers.", show_default="table"),
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="A file such as x.csv, or a folder that gets a file per query."
        ),
    ] = None
    rejects: Annotated[
        Path | None, typer.Option("--rejects", help="Write every rejected row to this CSV file.")
    ] = None
    strict: Annotated[bool, typer.Option("--strict", help="Fail on the first rejected row.")] = (
        False
    )
    sentiment: SentimentOption = None
    memory_limit: Annotated[
        str | None,
        typer.Option(
            "--memory-limit", help="Memory for the process, e.g. 1GB; the rest spills to disk."
        ),
    ] = None
    engine: EngineOption = Engine.EMBEDDED
    partitions: Annotated[
        int,
        typer.Option(
            "--partitions", min=1, max=4096, help="Partitions of folds in the split engine."
        ),
    ] = 4
    batch_size: Annotated[
        str | None,
        typer.Option(
            "--batch-size",
            help="How much of a file to read at once: 8MiB; on a cluster 16MiB, Spark to 24MiB.",
        ),
    ] = None
    remote: Annotated[
        str | None, typer.Option("--remote", help="The Spark of --engine spark: sc://host:15002.")
    ] = None
    master: Annotated[
        str | None,
        typer.Option(
            "--master", help="The same as a master: spark://host:7077.", show_default="local[*]"
        ),
    ] = None
    inputs: Annotated[
        SparkInputs,
        typer.Option("--inputs", help="How executors of Spark get files: read them, or be sent."),
    ] = SparkInputs.AUTO
    ship: Annotated[
        bool, typer.Option("--ship", help="Send Caudal and its packages to executors of Spark.")
    ] = False
    profile: Annotated[
        bool, typer.Option("--profile", help="Show rows, bytes and seconds per table and operator.")
    ] = False
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Show no progress, times or notes; rejected rows only.")
    ] = False
    reading: ReadingOptions = ReadingOptions()

    def batch_bytes(self, usual: int) -> int:
        return self.given_batch_bytes or usual

    @property
    def given_batch_bytes(self) -> int | None:
        return _batch_bytes(self.batch_size) if self.batch_size else None

    def run_options(self, sink: Callable[[RejectedRow], None] | None) -> RunOptions:
        spark = SparkOptions(None, self.remote, self.master, self.inputs, self.ship)
        if spark != SparkOptions() and self.engine is not Engine.SPARK:
            raise UsageError(
                "--remote, --master, --inputs and --ship are for Spark: add --engine spark"
            )
        return RunOptions(
            spark=spark,
            sentiment=self.sentiment,
            memory_limit=parse_bytes(self.memory_limit) if self.memory_limit else None,
            batch_bytes=self.given_batch_bytes,
            partitions=self.partitions,
            strict=self.strict,
            profile=self.profile,
            reject_sink=sink,
            kept_bindings=_kept_bindings(),
        )

    def sources(self, app: Application) -> Sources:
        folder = self.data or Path()
        if not folder.is_dir():
            raise UsageError(f"no folder {folder}: give the folder with the files as --data DIR")
        return Sources(folder, file_overrides(app, self.file), reading=self.reading.reading())


def _kept_bindings() -> Path | None:
    folder = cache_folder()
    return folder / "bindings" if folder else None


def with_reading(command: Callable[..., Returned]) -> Callable[..., Returned]:
    """Return the command with one option per field of `ReadingOptions` in place of `reading`."""
    return spread(command, "reading", ReadingOptions)


def with_asking(
    command: Callable[..., Returned], without: Collection[str] = ()
) -> Callable[..., Returned]:
    """Return the command with one option per field of `QueryOptions` in place of `asking`.

    The fields named in `without` get no option and keep their default. The options about files are
    offered unless `reading` is among them.
    """
    is_offered = "reading" not in without
    also = "reading" if is_offered else None
    asked = spread(command, "asking", QueryOptions, {*without, "reading"}, also=also)
    return with_reading(asked) if is_offered else asked


def spread(
    command: Callable[..., Returned],
    name: str,
    group: type[Any],
    without: Collection[str] = (),
    *,
    also: str | None = None,
) -> Callable[..., Returned]:
    """Return the command with one option per field of a dataclass in place of a parameter.

    `also` is a field that the caller gives whole.
    """
    hints = get_type_hints(group, include_extras=True)
    offered = [field for field in fields(group) if field.name not in without]
    shared = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default,
            annotation=hints[field.name],
        )
        for field in offered
    ]  # fmt: skip
    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(command).parameters.values()
        if parameter.name != name
    ]

    @functools.wraps(command)
    def called(**given: Any) -> Returned:
        values = {field.name: given.pop(field.name) for field in offered}
        if also in given:
            values[also] = given.pop(also)
        return command(**given, **{name: group(**values)})

    arguments = [one for one in own if one.default is inspect.Parameter.empty]
    options = [one for one in own if one.default is not inspect.Parameter.empty]
    whole = [
        one for one in (inspect.Parameter(also or "_", inspect.Parameter.KEYWORD_ONLY),) if also
    ]
    signature = inspect.Signature([*arguments, *whole, *options, *shared])
    called.__signature__ = signature  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
    return called


def parameter_values(
    defaults: Mapping[str, ParameterValue], given: list[str] | None
) -> dict[str, ParameterValue]:
    """Return the NAME=VALUE parameters, each converted to the type of its default, or as text."""
    return {
        name: convert(name, value, defaults.get(name, ""))
        for name, value in pairs(given, "--param", "NAME=VALUE")
    }


def file_overrides(app: Application, given: list[str] | None) -> dict[str, list[str]]:
    """Return the TABLE=PATH files by table."""
    tables = [table.name for table in app.tables]
    overrides: dict[str, list[str]] = {}
    for table, path in pairs(given, "--file", "TABLE=PATH"):
        if table not in tables:
            raise UsageError(
                f"--file {table}={path}: {app.name} has no table {table!r}; "
                f"its tables are: {', '.join(tables)}"
            )
        overrides.setdefault(table, []).append(path)
    return overrides


def pairs(given: list[str] | None, option: str, form: str) -> list[tuple[str, str]]:
    """Return the NAME=VALUE texts of an option, cut at the first `=`."""
    found = []
    for text in given or ():
        name, separator, value = text.partition("=")
        if not separator or not name or (form == "TABLE=PATH" and not value):
            raise UsageError(f"{option} {text}: write it as {form}")
        found.append((name, value))
    return found


def _batch_bytes(text: str) -> int:
    size = parse_bytes(text)
    if not _LEAST_BATCH_BYTES <= size <= _MOST_BATCH_BYTES:
        raise UsageError(f"--batch-size {text}: choose from 4KiB to 1GiB")
    return size
