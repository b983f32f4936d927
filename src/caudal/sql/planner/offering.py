"""The public names of the planner, each with its module, which is loaded when the name is used.

So modules that need only the planner's data (`plan.py`, `binder.py`) do not load the SQL parser.
"""

from caudal import late

late.offer(
    "caudal.sql.planner",
    {
        "Binder": "caudal.sql.planner.binder",
        "Finish": "caudal.sql.planner.plan",
        "Fold": "caudal.sql.planner.plan",
        "Hint": "caudal.sql.planner.plan",
        "OutputColumn": "caudal.sql.planner.binder",
        "Partition": "caudal.sql.planner.plan",
        "Plan": "caudal.sql.planner.plan",
        "Reads": "caudal.sql.planner.binder",
        "RefusedQueryError": "caudal.sql.planner.refusals",
        "Scan": "caudal.sql.planner.plan",
        "Strategy": "caudal.sql.planner.plan",
        "TableSchema": "caudal.sql.planner.plan",
        "TextChecks": "caudal.sql.planner.text_checks",
        "draw": "caudal.sql.planner.draw",
        "explain": "caudal.sql.planner.explain",
        "filtered_scan": "caudal.sql.planner.row_by_row",
        "from_json": "caudal.sql.planner.plan",
        "only_filters": "caudal.sql.planner.row_by_row",
        "plan": "caudal.sql.planner.planner",
        "rewrite_text": "caudal.sql.planner.rules",
        "to_json": "caudal.sql.planner.plan",
    },
)
