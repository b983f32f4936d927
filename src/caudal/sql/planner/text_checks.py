"""What the rules that rewrite a query's text ask about it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

_WORDS = re.compile("avg|mean|now|today|age|current|local|transaction", re.IGNORECASE)


def may_be_rewritten(sql: str) -> bool:
    """Return whether a text rule may change the text. This needs no parser: it looks for parts of
    the names that the rules replace."""
    return _WORDS.search(sql) is not None


def _accept(_: str) -> bool:
    return True


@dataclass(frozen=True)
class TextChecks:
    """The moment of a run, and the questions that only DuckDB can answer about a changed text.

    Without DuckDB (in tests) every change is accepted.
    """

    moment: datetime | None = None  # what now() means; None: leave it to DuckDB
    means_same: Callable[[str, str], bool] | None = None  # do two texts have the same plan?
    is_valid: Callable[[str], bool] = _accept  # may this text replace the given one?
