"""Queries that failed while others go on: one query's failure is that query's alone.

Rules
1. A step that fails, fails the queries that need it; they are listed with the step.
2. A step whose queries have all failed is not run any more. What it would have read may be missing.
3. Who of several queries made a common step fail cannot be told: each is asked again, alone.
4. If every query failed there is nothing to give, and the first failure is raised.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from caudal.errors import QueryError
from caudal.results.answers import Result


@dataclass
class Failures:
    """Why queries failed. Any thread may add."""

    errors: dict[str, QueryError] = field(default_factory=dict)
    steps: set[str] = field(default_factory=set)  # that failed: their outputs are incomplete
    together: set[str] = field(default_factory=set)  # queries that failed in a common step

    @contextmanager
    def of(self, queries: Iterable[str], step: str = "") -> Iterator[None]:
        """What fails in here, fails these queries and nothing else."""
        try:
            yield
        except QueryError as error:
            self.note(queries, error, step)

    def note(self, queries: Iterable[str], error: QueryError, step: str = "") -> None:
        alive = [query for query in queries if query not in self.errors]
        self.errors.update(dict.fromkeys(alive, error))
        self.together.update(alive if len(alive) > 1 else ())
        if step:
            self.steps.add(step)

    def concern_all(self, queries: Iterable[str]) -> bool:
        """Whether nobody waits for a step of these queries any more (rule 2)."""
        return all(query in self.errors for query in queries)


def settled(
    results: Mapping[str, Result], errors: Mapping[str, QueryError]
) -> Mapping[str, QueryError]:
    """The failures of a run with these results (rule 4)."""
    if errors and not results:
        raise next(iter(errors.values()))
    return errors
