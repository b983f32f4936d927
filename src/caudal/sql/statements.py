"""The error message for a text that is not one SELECT."""

import re

_PIVOT = re.compile(r"\bpivot(_wider)?\b", re.IGNORECASE)


def not_one_select(sql: str) -> str:
    """Return why a text is not one SELECT, and what to write instead.

    DuckDB reads a PIVOT without a list of values as several statements: first it finds the values,
    then it selects. Its columns would depend on the rows.
    """
    if _PIVOT.search(sql):
        return (
            "a PIVOT must list its values, since they are the columns of the answer: "
            "write PIVOT ... ON column IN ('one', 'two') USING ..."
        )
    return "must hold one SELECT and nothing else"
