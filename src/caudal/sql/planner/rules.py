"""The rules that rewrite a query, in the order in which they run.

A query passes these steps on its way to a plan (`planner.py`):

1. `TEXT_RULES` rewrite its text. Both engines run the rewritten text, so they agree on it.
2. The text is parsed (`dialect.py`) and read into the algebra (`query_reader.py`).
3. `RULES` rewrite the algebra. The split engine applies all of them. The embedded engine applies
   `push_filters` alone, to see which rows of a table a query can see (`sql/footprint.py`).
4. The algebra is cut into stages (`lower.py`): each operator says where its rows have to be.
5. Scans get hints, which let them drop rows that no later stage keeps (`hints.py`).

Every rule keeps the multiset of rows that a query gives, nulls included. A rule never makes a query
fail that did not fail before: what it moves to an earlier place cannot raise an error there
(`sql/error_free.py`). Each rule shows an example in its docstring, which
`tests/unit/sql/test_rule_examples.py` runs.
"""

from collections.abc import Callable

from caudal.sql.planner.algebra import Context, Node
from caudal.sql.planner.averages import rewrite_averages
from caudal.sql.planner.current_time import freeze_current_time
from caudal.sql.planner.delay_semi_joins import delay_semi_joins
from caudal.sql.planner.group_before_joins import group_before_joins
from caudal.sql.planner.lift_orders import lift_orders
from caudal.sql.planner.order_joins import order_joins
from caudal.sql.planner.push_filters import push_filters
from caudal.sql.planner.text_checks import TextChecks

TEXT_RULES: tuple[Callable[[str, TextChecks], str], ...] = (
    freeze_current_time,
    rewrite_averages,
)

RULES: tuple[Callable[[Node, Context], Node], ...] = (
    lift_orders,
    push_filters,
    order_joins,
    delay_semi_joins,
    group_before_joins,
)


def rewrite_text(sql: str, checks: TextChecks) -> str:
    """Return the text of a query after all text rules."""
    for rule in TEXT_RULES:
        sql = rule(sql, checks)
    return sql


def rewrite_algebra(node: Node, context: Context) -> Node:
    """Return the algebra of a query after all rules."""
    for rule in RULES:
        node = rule(node, context)
    return node
