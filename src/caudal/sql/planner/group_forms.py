"""Can a condition tell values apart that one group holds?

A group holds values that DuckDB calls equal. They need not be the same: 0.0 and -0.0 are one group,
and so are one month and 30 days, but `CAST(x AS VARCHAR)` or `date_part` tells them apart. A
condition that does so may not be evaluated on groups in place of rows.
"""

from collections.abc import Iterable

from caudal.sql.planner import types
from caudal.sql.planner.algebra import Context, Expr, column_of


def keep_groups_whole(conditions: Iterable[Expr], keys: frozenset[int], context: Context) -> bool:
    """Return whether each condition gives the same for all rows of a group of these keys."""
    return all(_keeps_whole(condition, keys, context) for condition in conditions)


def _keeps_whole(condition: Expr, keys: frozenset[int], context: Context) -> bool:
    if condition.sides is not None and None not in map(column_of, map(_text, condition.sides)):
        return True  # columns are compared as groups are made
    return all(types.has_one_form(context.types[key]) for key in condition.columns & keys)


def _text(side: Expr) -> str:
    return side.text
