"""Queries, split into stages of plain SQL. Start at `plan`; the data it gives is in `plan.py`."""

from caudal.sql.planner.averages import rewrite_averages
from caudal.sql.planner.binder import Binder, OutputColumn, Reads
from caudal.sql.planner.draw import draw
from caudal.sql.planner.explain import explain
from caudal.sql.planner.filtering import only_filters, source_of
from caudal.sql.planner.plan import (
    Finish,
    Fold,
    Hint,
    Partition,
    Plan,
    Scan,
    Strategy,
    TableSchema,
    from_json,
    to_json,
)
from caudal.sql.planner.planner import plan
from caudal.sql.planner.refusals import RefusedQueryError

__all__ = [
    "Binder",
    "Finish",
    "Fold",
    "Hint",
    "OutputColumn",
    "Partition",
    "Plan",
    "Reads",
    "RefusedQueryError",
    "Scan",
    "Strategy",
    "TableSchema",
    "draw",
    "explain",
    "from_json",
    "only_filters",
    "plan",
    "rewrite_averages",
    "source_of",
    "to_json",
]
