"""`caudal explain` for the split engine: the plan of a query among all of its application."""

from collections.abc import Mapping

from caudal.duck.bind import choose_queries
from caudal.duck.job_plan import make_plan
from caudal.kernels.sentiment import load_model
from caudal.model import Application, ParameterValue
from caudal.sql.graph import PlanFormat, render
from caudal.sql.planner import draw, explain


def explain_split(
    app: Application,
    query: str,
    parameters: Mapping[str, ParameterValue],
    form: PlanFormat = PlanFormat.TEXT,
    *,
    sql: bool = False,
) -> str:
    """Return the plan of one query. All queries are planned, to show shared stages."""
    choose_queries(app, [query])
    split = make_plan(app, None, parameters, load_model(app.sentiment))
    title = next(one.title for one in split.queries if one.name == query)
    if form is not PlanFormat.TEXT:
        return render(draw(split.plan, query, title), form)
    return f"{app.name} {query}: {title}\nengine: split\n\n{explain(split.plan, query, sql=sql)}"
