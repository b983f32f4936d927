"""Which queries only filter: each row of the answer comes from one row of one table.

The rows of such a query can be shown batch by batch: the finish over the slices of one batch gives
exactly the rows that this batch adds to the answer. ORDER BY does not prevent that, since it moves
rows and neither makes nor drops any. Every doubt means no: then there is no preview.
"""

from functools import lru_cache

from sqlglot import exp

from caudal.sql.planner import dialect
from caudal.sql.planner.dialect import UnsupportedError
from caudal.sql.planner.plan import Finish, Plan, Scan

# Steps that look at one row at a time, or only move rows. `sentiment` and its kin are functions.
_ROW_BY_ROW = frozenset({"read", "filter", "project", "unnest", "order"})
_FUNCTIONS = frozenset({"sentiment", "names", "items"})
# Whatever looks at several rows at once, or at a count of them. DISTINCT and OFFSET among them.
_SEVERAL_ROWS = (
    exp.AggFunc, exp.Distinct, exp.Fetch, exp.Group, exp.Having, exp.Join, exp.Limit, exp.Offset,
    exp.Qualify, exp.SetOperation, exp.TableSample, exp.Window,
)  # fmt: skip


def only_filters(plan: Plan, query: str) -> bool:
    """Is the answer the rows that the batches of one table add, one after the other?"""
    return filtered_scan(plan, query) is not None


def filtered_scan(plan: Plan, query: str) -> Scan | None:
    """The one scan that a query reads, if the query only filters."""
    finish = plan.finish(query)
    stages = set(finish.inputs.values())
    scan = next((one for one in plan.scans if {one.name} == stages), None)
    if scan is None or finish.strategy != "scaled" or not _is_row_by_row(scan, finish):
        return None
    return scan


def _is_row_by_row(scan: Scan, finish: Finish) -> bool:
    operators = {*scan.operators, *finish.operators}
    return operators <= _ROW_BY_ROW | _FUNCTIONS and all(
        _sees_one_row(sql) for sql in (scan.sql, finish.sql)
    )


@lru_cache(maxsize=256)
def _sees_one_row(sql: str) -> bool:
    try:
        tree = dialect.parse(sql)
    except UnsupportedError:
        return False
    tables = list(tree.find_all(exp.Table))
    return len(tables) == 1 and tree.find(*_SEVERAL_ROWS) is None
