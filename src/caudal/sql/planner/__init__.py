"""The planner: queries become stages of plain SQL.

Start at `rules.py`, which lists the steps. `plan` makes a plan; `plan.py` says what a plan is.
"""

from typing import TYPE_CHECKING

from caudal.sql.planner import offering  # noqa: F401 - loads the names below on first use

if TYPE_CHECKING:
    from caudal.sql.planner.binder import Binder, OutputColumn, Reads
    from caudal.sql.planner.draw import draw
    from caudal.sql.planner.explain import explain
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
    from caudal.sql.planner.row_by_row import filtered_scan, only_filters
    from caudal.sql.planner.rules import rewrite_text
    from caudal.sql.planner.text_checks import TextChecks

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
    "TextChecks",
    "draw",
    "explain",
    "filtered_scan",
    "from_json",
    "only_filters",
    "plan",
    "rewrite_text",
    "to_json",
]
