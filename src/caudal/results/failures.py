"""Failures of single queries, while the other queries of a run continue.

Rules
1. A step that fails, fails the queries that need it, and nothing else.
2. Who of several queries made a common step fail cannot be told: where they can be, they are asked
   again, each alone.
3. If every query failed there is nothing to give, and the first failure is raised.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from caudal.errors import QueryError
from caudal.results.answers import Result


@dataclass
class Failures:
    """The errors of failed queries. Any thread may add one."""

    errors: dict[str, QueryError] = field(default_factory=dict)

    @contextmanager
    def of(self, query: str) -> Iterator[None]:
        """What fails in here, fails this query and nothing else."""
        try:
            yield
        except QueryError as error:
            self.note(query, error)

    def note(self, query: str, error: QueryError) -> None:
        self.errors.setdefault(query, error)


def settled(
    results: Mapping[str, Result], errors: Mapping[str, QueryError]
) -> Mapping[str, QueryError]:
    """The failures of a run with these results (rule 3)."""
    if errors and not results:
        raise next(iter(errors.values()))
    return errors
