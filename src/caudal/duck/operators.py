"""The glossary's names for DuckDB's operators."""

# DuckDB's physical operators and their names in docs/glossary.md.
_WORDS = {
    "SEQ_SCAN": "read",
    "TABLE_SCAN": "read",
    "COLUMN_DATA_SCAN": "values",
    "DUMMY_SCAN": "values",
    "FILTER": "filter",
    "PROJECTION": "project",
    "HASH_JOIN": "join",
    "LEFT_DELIM_JOIN": "join",
    "RIGHT_DELIM_JOIN": "join",
    "NESTED_LOOP_JOIN": "join",
    "BLOCKWISE_NL_JOIN": "join",
    "PIECEWISE_MERGE_JOIN": "join",
    "CROSS_PRODUCT": "join",
    "HASH_GROUP_BY": "group",
    "PERFECT_HASH_GROUP_BY": "group",
    "UNGROUPED_AGGREGATE": "group",
    "TOP_N": "top",
    "ORDER_BY": "order",
    "STREAMING_LIMIT": "limit",
    "LIMIT": "limit",
    "UNNEST": "unnest",
    "UNION": "union",
    "WINDOW": "window",
    "STREAMING_WINDOW": "window",
}


PLUMBING = frozenset({"project", "cte"})  # steps that neither choose nor compute rows


def operator_word(name: str) -> str:
    """Return the glossary's name for one of DuckDB's operators."""
    return _WORDS.get(name.strip(), name.strip().lower().replace("_", " "))
