"""Queries that only filter: each row of the answer comes from one row of one table.

The rows of such a query can be shown batch by batch: the finish over the slices of one batch gives
exactly the rows that this batch adds to the answer. ORDER BY is allowed, because it neither adds
nor drops rows. If it is not certain that a query only filters, there is no preview.
"""

from functools import lru_cache

from caudal.sql.planner.plan import Finish, Plan, Scan

# Operators that read one row at a time, or only order rows. Functions of Caudal are operators too.
_ROW_BY_ROW = frozenset({"read", "filter", "project", "unnest", "order"})
_FUNCTIONS = frozenset({"sentiment", "names", "items"})


def only_filters(plan: Plan, query: str) -> bool:
    """Return whether the answer is the rows that each batch of one table adds."""
    return filtered_scan(plan, query) is not None


def filtered_scan(plan: Plan, query: str) -> Scan | None:
    """Return the one scan that a query reads, if it only filters; else None."""
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
    from sqlglot import exp  # few gateways ask: they start without the parser

    from caudal.sql.planner import dialect
    from caudal.sql.planner.dialect import UnsupportedError

    try:
        tree = dialect.parse(sql)
    except UnsupportedError:
        return False
    several_rows = (  # syntax that reads several rows at once, or counts rows
        exp.AggFunc, exp.Distinct, exp.Fetch, exp.Group, exp.Having, exp.Join, exp.Limit,
        exp.Offset, exp.Qualify, exp.SetOperation, exp.TableSample, exp.Window,
    )  # fmt: skip
    tables = list(tree.find_all(exp.Table))
    return len(tables) == 1 and tree.find(*several_rows) is None
