"""The text of a new application's files: app.toml, tables and queries. No file is written here.

Names get the usual SQL form (`review/score` becomes review_score). The file's own column names stay
in `raw` and in the reject reasons, so that a reader can find them in the file.
"""

import itertools
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

from caudal.application.sniff import ITEMS, NAMES, TEXT, Column, ColumnKind
from caudal.duck.database import keywords
from caudal.files.reading import USUAL
from caudal.model import REJECT, Reading
from caudal.sql.literals import literal
from caudal.sql.quoting import quote

_LINE_LENGTH = 98


@dataclass(frozen=True)
class DraftColumn:
    """A column of a file and its name in the application."""

    raw: str  # its name in the file
    name: str
    text: str  # name of its text column, if the text is kept beside the typed value
    kind: ColumnKind
    repeats: bool
    distinct: int


@dataclass(frozen=True)
class DraftTable:
    """A table of the new application."""

    name: str
    file: str  # relative to the data folder, without a compression suffix
    columns: tuple[DraftColumn, ...]
    reading: Reading = USUAL


def texts(name: str, tables: Sequence[DraftTable]) -> dict[str, str]:
    """Return the files of the folder as path -> text."""
    found = {"app.toml": _app_file(name, tables)}
    for table in tables:
        found[f"tables/{table.name}.sql"] = table_sql(table)
        found |= {f"queries/{query}.sql": sql for query, sql in _queries(table).items()}
    return found


def _app_file(name: str, tables: Sequence[DraftTable]) -> str:
    return "\n".join([f"title = {_toml(name)}\n", *map(_table_entry, tables)])


def _table_entry(table: DraftTable) -> str:
    columns = _listed([_toml(column.raw) for column in table.columns], indent=2)
    return (
        f"[[tables]]\nname = {_toml(table.name)}\nfiles = [{_toml(table.file)}]\n"
        f"columns = [\n{columns},\n]\n{_reading_lines(table.reading)}"
    )


def _reading_lines(reading: Reading) -> str:
    """Return the lines of app.toml about the files of a table."""
    given = {one.name: getattr(reading, one.name) for one in fields(Reading)}
    return "".join(
        f"{name} = {_toml_value(value)}\n"
        for name, value in given.items()
        if value not in (None, False) or (name == "header" and value is False)
    )


def _toml_value(value: object) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_toml(key)} = {_toml(one)}' for key, one in value.items())} }}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return _toml(value) if isinstance(value, str) else str(value).lower()


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _listed(words: Sequence[str], *, indent: int) -> str:
    """Join words with commas, in lines of at most _LINE_LENGTH characters."""
    lines = [" " * indent + words[0]]
    for word in words[1:]:
        fits = len(lines[-1]) + len(word) + 3 <= _LINE_LENGTH
        lines[-1:] = [f"{lines[-1]}, {word}"] if fits else [f"{lines[-1]},", " " * indent + word]
    return "\n".join(lines)


def table_sql(table: DraftTable) -> str:
    title = f"-- One row for each record of {' '.join(table.file.split())}"
    typed = [column for column in table.columns if column.kind is not TEXT]
    values = [f"{_converted(column)} AS {_sql_name(column.name)}" for column in table.columns]
    if not typed:
        return f"{title}\nSELECT\n{_lines(values, indent=4)}\nFROM raw\n"
    texts = [f"{_raw(column)} AS {_sql_name(column.text)}" for column in typed]
    names = _listed([_sql_name(column.name) for column in table.columns], indent=4)
    return (
        f"{title}\n-- An empty field is null; a text that does not convert rejects its row.\n"
        f"SELECT\n{names},\n    CASE\n"
        + "".join(map(_reason, typed))
        + f"    END AS {REJECT}\nFROM (\n    SELECT\n{_lines(values + texts, indent=8)}\n"
        "    FROM raw\n)\n"
    )


def _lines(words: Sequence[str], *, indent: int) -> str:
    return ",\n".join(" " * indent + word for word in words)


def _reason(column: DraftColumn) -> str:
    return (
        f"        WHEN {_sql_name(column.name)} IS NULL AND {_sql_name(column.text)} IS NOT NULL\n"
        f"        THEN {literal(f'{column.raw} {column.kind.is_not}')}\n"
    )


def draft_columns(columns: Sequence[Column], *, keep_names: bool = False) -> Iterator[DraftColumn]:
    """Yield columns with unique names, in the usual SQL form or as in the file."""
    taken = {REJECT}
    names = [
        unused(column.name if keep_names else _usual_name(column, place), taken)
        for place, column in enumerate(columns, start=1)
    ]
    for column, name in zip(columns, names, strict=True):
        text = unused(f"{name}_text", taken) if column.kind is not TEXT else name
        yield DraftColumn(column.name, name, text, column.kind, column.repeats, column.distinct)


def _usual_name(column: Column, place: int) -> str:
    return identifier(column.name) or f"column_{place}"


def unused(name: str, taken: set[str]) -> str:
    """Return the name, with a number if it is taken, and add the result to `taken`."""
    names = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
    free = next(candidate for candidate in names if candidate.lower() not in taken)
    taken.add(free.lower())
    return free


def _raw(column: DraftColumn) -> str:
    return f"raw.{_sql_name(column.raw)}"


def _converted(column: DraftColumn) -> str:
    return column.kind.convert.replace("$", _raw(column))


def _queries(table: DraftTable) -> dict[str, str]:
    """Return example queries: the number of rows, and the most frequent values of a column."""
    name = _sql_name(table.name)
    queries = {
        f"{table.name}_rows": f"-- Number of rows in {table.name}\n"
        f"SELECT count(*) AS row_count\nFROM {name}\n"
    }
    column = _telling_column(table.columns)
    if column is not None:
        value = _sql_name(column.name)
        source = name
        if column.kind in (NAMES, ITEMS):
            source = f"(SELECT unnest({value}) AS {value} FROM {name})"
        count = "row_count" if column.name != "row_count" else "frequency"
        queries[f"{table.name}_top_{column.name}"] = (
            f"-- The ten most frequent values of {column.name} in {table.name}\n"
            f"SELECT {value}, count(*) AS {count}\nFROM {source}\nGROUP BY {value}\n"
            f"ORDER BY count(*) DESC, {value}\nLIMIT 10\n"
        )
    return queries


def _telling_column(columns: Sequence[DraftColumn]) -> DraftColumn | None:
    """Return the column to group by: the most repetitive text, else a list, else any text."""
    texts = [column for column in columns if column.kind is TEXT]
    repeating = sorted((text for text in texts if text.repeats), key=lambda text: text.distinct)
    lists = [column for column in columns if column.kind in (NAMES, ITEMS)]
    return next(iter(repeating + lists + texts), None)


def table_name(stem: str) -> str:
    """Return a table name for a file that needs no quotes in SQL."""
    name = identifier(stem) or "records"
    return f"{name}_records" if name == "raw" or name in keywords() else name


def identifier(text: str) -> str:
    """Convert `review/score`, `publishedDate`, `País` to review_score, published_date, pais."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain)
    name = re.sub(r"[^a-z0-9]+", "_", parted.lower()).strip("_")
    return f"n_{name}" if name[:1].isdigit() else name


def _sql_name(name: str) -> str:
    """Return a name as SQL, quoted only if necessary."""
    plain = re.fullmatch(r"[a-z_][a-z0-9_]*", name) and name not in keywords()
    return name if plain else quote(name)
