"""What the rules that rewrite a query's text ask about it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

_WORDS = re.compile("avg|mean|now|today|age|ago|current|local|transaction", re.IGNORECASE)


def may_be_rewritten(sql: str) -> bool:
    """Return whether a text rule may change the text. This needs no parser: it looks for parts of
    the names that the rules replace."""
    return _WORDS.search(sql) is not None


@dataclass(frozen=True, order=True)
class Edit:
    """New text in place of the characters from `start` to `end` (not included)."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, order=True)
class SelectItem:
    """The characters of an item of a SELECT."""

    start: int
    end: int


def edited(sql: str, edits: Sequence[Edit]) -> str:
    """Return the text after edits, which do not overlap."""
    for one in sorted(edits, reverse=True):
        sql = sql[: one.start] + one.text + sql[one.end :]
    return sql


def _accept(_: str) -> bool:
    return True


@dataclass(frozen=True)
class TextChecks:
    """The moment of a run, and the questions that only DuckDB can answer about a changed text.

    Without DuckDB (in tests) every change is accepted.
    """

    moment: datetime | None = None  # what now() means; None: leave it to DuckDB
    means_same: Callable[[str, str], bool] | None = None  # does DuckDB bind two texts alike?
    is_valid: Callable[[str], bool] = _accept  # may this text replace the given one?
    # Returns a text after edits, with names for items; None if a column inside has another name.
    change: Callable[[str, Sequence[Edit], Sequence[SelectItem]], str | None] | None = None
