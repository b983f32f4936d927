"""Why a text is not one SELECT, in words that say what to write instead."""

import re

_PIVOT = re.compile(r"\bpivot(_wider)?\b", re.IGNORECASE)


def not_one_select(sql: str) -> str:
    """The reason for a text that DuckDB reads as several statements, or as none that selects.

    A PIVOT whose values are not listed is such a text: DuckDB first looks for the values, then
    selects. Its columns would depend on the rows.
    """
    if _PIVOT.search(sql):
        return (
            "a PIVOT must list its values, since they are the columns of the answer: "
            "write PIVOT ... ON column IN ('one', 'two') USING ..."
        )
    return "must hold one SELECT and nothing else"
