"""What the rules that rewrite a query's text ask about it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime


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
