"""Which queries take the rows of one table once, one by one, in their order. DuckDB's plan says it.

Such a query can be answered while the rows are read, and its LIMIT can end the reading. Only the
operators listed here are known to keep the order and to need no row twice. A plan with any other
operator, or with more than one scan, takes the rows in many passes as far as we know.
"""

import json
from enum import StrEnum

_ROW_BY_ROW = frozenset({"PROJECTION", "FILTER", "UNNEST", "STREAMING_LIMIT", "LIMIT"})
_LIMITS = frozenset({"STREAMING_LIMIT", "LIMIT"})
_COUNTING = _LIMITS | {"PROJECTION"}  # one row out for each row in, until the limit


class Passes(StrEnum):
    """How a query takes the rows of its tables."""

    MANY = "many"  # perhaps more than once, or in another order
    ONE = "one"  # each row once, in order
    FIRST_ROWS = "first rows"  # as ONE, and no more rows than its LIMIT says


def passes_of(plan: str) -> Passes:
    """Return how a query takes rows. `plan` is that of `Reads`: no operator is optimised away."""
    *above, (scan, _, below) = json.loads(plan)
    names = {name for name, _, _ in above}
    is_chain = all(children == 1 for _, _, children in above) and not below
    if not is_chain or scan != "SEQ_SCAN" or not names <= _ROW_BY_ROW:
        return Passes.MANY
    return Passes.FIRST_ROWS if names & _LIMITS and names <= _COUNTING else Passes.ONE
