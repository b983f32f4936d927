"""Words of SQL that may make a query answer otherwise the next time, over the same rows.

This is the one list of them: `duck/row_wise.py` refuses such functions in the SQL of tables. A test
compares it with what the installed DuckDB says (`tests/unit/engine/test_rowwise.py`).

A text is only searched for words, without parsing it: a column of that name counts too. Nothing is
lost by that but an answer that could have been given from what is stored.
"""

import re
from collections.abc import Iterable

# Functions that DuckDB calls volatile, or consistent within one query only, and macros of them.
CHANGING = frozenset(
    {
        "ago", "current_catalog", "current_connection_id", "current_database", "current_date",
        "current_query", "current_query_id", "current_schema", "current_schemas",
        "current_setting", "current_transaction_id", "currval", "gen_random_uuid",
        "get_current_time", "get_current_timestamp", "getvariable", "in_search_path", "nextval",
        "now", "pg_conf_load_time", "pg_postmaster_start_time", "pg_sleep", "random", "setseed",
        "setval", "sleep_ms", "stats", "today", "transaction_timestamp", "txid_current", "uuid",
        "uuidv4", "uuidv7", "vector_type", "write_log",
    }
)  # fmt: skip
# DuckDB calls these consistent, though they ask the clock or draw rows.
UNTOLD = frozenset({"current_localtime", "current_localtimestamp", "reservoir_quantile"})
WITH_ONE_ARGUMENT = frozenset({"age"})  # with two arguments it asks no clock
KEYWORDS = frozenset(  # values that SQL names without parentheses
    {"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"}
)
_CLAUSES = frozenset({"tablesample", "sample"})
WORDS = CHANGING | UNTOLD | WITH_ONE_ARGUMENT | KEYWORDS | _CLAUSES
_FOUND = re.compile(rf"\b({'|'.join(sorted(WORDS))})\b", re.IGNORECASE)


def may_vary(texts: Iterable[str]) -> bool:
    """Return whether one of these texts of SQL may give other rows when it is asked again.

    >>> may_vary(["SELECT count(*) FROM t"]), may_vary(["SELECT NOW()"])
    (False, True)
    """
    return any(_FOUND.search(text) for text in texts)
