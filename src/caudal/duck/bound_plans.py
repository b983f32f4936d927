"""Do two texts mean the same? DuckDB says what it takes every name in them for.

The plan is compared as DuckDB binds it, with all of its expressions. The plan that EXPLAIN shows
does not do: it has the alias of an item in place of the item, and no bodies of lambdas.
"""

import json
from typing import Any

import duckdb

_PLAN = "json_serialize_plan(?::VARCHAR, optimize := false)"
# Names of items and of fields, and places in the text. `kept_names.py` looks after names.
_WRITTEN = frozenset(
    ("alias", "first", "named_arguments", "query_location", "query_location_length")
)


def mean_same(cursor: duckdb.DuckDBPyConnection, one: str, other: str) -> bool:
    """Return whether DuckDB binds both texts to the same plan; False if it cannot say.

    Both are bound at the same moment, because constants are computed.
    """
    try:
        ((first, second),) = cursor.execute(f"SELECT {_PLAN}, {_PLAN}", [one, other]).fetchall()
        plans = [json.loads(text) for text in (first, second)]
    except (duckdb.Error, ValueError, RecursionError):
        return False
    return not any(plan["error"] for plan in plans) and _meant(plans[0]) == _meant(plans[1])


def _meant(plan: Any) -> Any:
    """Return a plan without how its text was written."""
    if isinstance(plan, list):
        return [_meant(item) for item in plan]
    if not isinstance(plan, dict):
        return plan
    return {key: _meant(value) for key, value in plan.items() if key not in _WRITTEN}
