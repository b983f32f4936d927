"""Checks the relations and table functions that a SELECT uses, found by DuckDB's own parser.

Rules
1. A query may read only the relations that it is given and those that it defines itself (WITH).
2. Only table functions that just compute are on the list. All others are refused, including those
   of a later DuckDB: they read files (`read_text`, `glob`), settings, or memory by its address
   (`arrow_scan`), or run a text as SQL (`query`).
3. DuckDB's own protection is not enough: it lets SQL read the folder that it spills to.
4. A text is refused if DuckDB cannot list everything that it uses.
5. People who run their own SQL on their own machine may run texts as SQL (`query`). For them,
   DuckDB's own protection is enough.
"""

from collections import Counter
from collections.abc import Iterable

import duckdb

from caudal.errors import QueryError

FUNCTIONS = frozenset(
    ("generate_series", "json_each", "json_tree", "range", "repeat", "repeat_row", "unnest")
)
TRUSTED_FUNCTIONS = FUNCTIONS | {"query", "query_table"}  # rule 5
_PATHS = ("$..type", "$..table_name", "$..function.function_name", "$..cte_map.map[*].key")
_ASK = "SELECT {} FROM (SELECT json_serialize_sql(?) AS tree)".format(
    ", ".join(f"json_extract_string(tree, '{path}')" for path in _PATHS)
)


def require_own_relations(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    relations: Iterable[str],
    functions_known: frozenset[str] = FUNCTIONS,
) -> None:
    """Refuse a SELECT that reads anything else. The connection's parser is used."""
    rows = connection.execute(_ASK, [sql]).fetchall()
    kinds, tables, functions, named = (found or [] for found in rows[0])
    counted = Counter(kinds)
    if not kinds or counted["TABLE_FUNCTION"] != len(functions):
        raise QueryError("the query cannot be read: write it as one plain SELECT")
    for function in functions:
        if str(function).lower() not in functions_known:
            raise QueryError(f"the table function {function} cannot be used here")
    if counted["BASE_TABLE"] > len(tables):
        raise QueryError("the query cannot be read: write it as one plain SELECT")
    own = {name.lower() for name in (*relations, *named)}
    for table in tables:
        if table and str(table).lower() not in own:
            raise QueryError(f"Table with name {table} does not exist!")
