"""What may complete the text before the cursor: pure.

1. After a dot at the start, commands; after `.schema`, tables; after `.mode`, formats.
2. After `name.`, the columns of that table, or of the table with that alias.
3. After FROM and JOIN, tables. Inside of a quoted text, files are for the caller to complete.
4. Else columns of the tables that the statement names (of all tables if it names none), tables,
   functions and keywords.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from caudal.cli.formats import Format
from caudal.cli.shell.commands import COMMANDS

_WORD = re.compile(r"[\w$]*\Z")
_OWNER = re.compile(r'(?:"([^"]+)"|(\w+))\.\Z')
_TABLE_WANTED = re.compile(r"\b(?:from|join)\s+\Z|\bfrom\s+[^()]*,\s*\Z", re.IGNORECASE)
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*", re.IGNORECASE)


@dataclass(frozen=True)
class KnownNames:
    """The names that a statement may use."""

    tables: Mapping[str, Sequence[str]] = field(default_factory=dict)  # with their columns
    functions: Sequence[str] = ()
    keywords: Sequence[str] = ()


@dataclass(frozen=True)
class Suggestion:
    """A text that replaces the last `length` characters before the cursor."""

    text: str
    length: int
    kind: str


def suggest(before: str, catalog: KnownNames) -> list[Suggestion]:
    """Return what may stand at the end of this text, the most likely first."""
    word = _WORD.search(before)
    typed = word[0] if word else ""
    rest = before[: len(before) - len(typed)]
    found = dict.fromkeys(
        (text, kind)
        for text, kind in _candidates(rest, typed, catalog)
        if text.strip('"').lower().startswith(typed.lower()) and text != typed
    )
    return [Suggestion(text, len(typed), kind) for text, kind in found]


def _candidates(rest: str, typed: str, catalog: KnownNames) -> Iterator[tuple[str, str]]:
    start = rest.lstrip()
    if start.startswith("."):
        yield from _of_commands(start, catalog)
        return
    owner = _OWNER.search(rest)
    if owner:
        yield from _each(_columns(owner[1] or owner[2], rest, catalog), "column")
        return
    if _TABLE_WANTED.search(rest):
        yield from _each(catalog.tables, "table")
        return
    named = [table for table in catalog.tables if re.search(rf"\b{re.escape(table)}\b", rest, re.I)]
    for table in named or catalog.tables:
        yield from _each(catalog.tables[table], "column")
    yield from _each(catalog.tables, "table")
    if typed:
        yield from ((f"{name}(", "function") for name in catalog.functions)
        yield from ((_cased(name, typed), "keyword") for name in catalog.keywords)


def _of_commands(start: str, catalog: KnownNames) -> Iterator[tuple[str, str]]:
    command, space, _ = start[1:].partition(" ")
    if not space:
        yield from ((name, "command") for name in COMMANDS)
    elif command == "schema":
        yield from _each(catalog.tables, "table")
    elif command == "mode":
        yield from ((form.value, "format") for form in Format)
    elif command == "timing":
        yield from (("on", "value"), ("off", "value"))


def _each(names: Iterable[str], kind: str) -> Iterator[tuple[str, str]]:
    for name in names:
        yield (name if _PLAIN.fullmatch(name) else f'"{name}"', kind)


def _columns(owner: str, rest: str, catalog: KnownNames) -> Sequence[str]:
    """Return the columns of a table by its name, or by its alias in the statement."""
    for table, columns in catalog.tables.items():
        alias = rf'\b{re.escape(table)}"?\s+(?:as\s+)?"?{re.escape(owner)}\b'
        if table.lower() == owner.lower() or re.search(alias, rest, re.IGNORECASE):
            return columns
    return ()


def _cased(keyword: str, typed: str) -> str:
    return keyword.upper() if typed.isupper() else keyword.lower()
