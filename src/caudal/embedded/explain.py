"""`caudal explain` for the embedded engine: what is read, and the operators in order."""

import json
from collections.abc import Mapping
from typing import Any

from caudal.duck.bind import TableLoad, bind, choose_queries
from caudal.duck.database import Connection, open_database
from caudal.duck.operators import PLUMBING, operator_word
from caudal.kernels.sentiment import load_model
from caudal.model import Application, ParameterValue
from caudal.sql.footprint import EVERYTHING, Lift

_DETAILS = (
    "Table",
    "Join Type",
    "Conditions",
    "Expression",
    "Filters",
    "Groups",
    "Aggregates",
    "Top",
    "Order By",
)


def explain_query(app: Application, name: str, parameters: Mapping[str, ParameterValue]) -> str:
    """The explanation of one query as text."""
    chosen = choose_queries(app, [name], parameters)
    with open_database(load_model(app.sentiment)) as connection:
        binding = bind(app, chosen, parameters, connection)
        for load in binding.loads:
            for statement in load.create:
                connection.execute(statement)
        steps = operators(connection, binding.queries[0].sql)
    lines = [f"{app.name} {name}: {chosen[0].title}", "engine: embedded", ""]
    for load in binding.loads:
        lines += _table_lines(load)
    lines.append("then")
    lines += [f"  {place:>2}. {step}" for place, step in enumerate(steps, start=1)]
    return "\n".join(lines)


def operators(connection: Connection, sql: str) -> list[str]:
    """The operators of a query in the order in which rows pass them."""
    # The tables are empty here, and nothing may be concluded from that.
    connection.execute("SET disabled_optimizers = 'statistics_propagation'")
    row = connection.execute(f"EXPLAIN (FORMAT json) {sql}").fetchone()
    steps: list[str] = []

    def visit(node: dict[str, Any]) -> None:
        for child in node["children"]:
            visit(child)
        word = operator_word(node["name"])
        if word not in PLUMBING:
            steps.append(f"{word:<8}{_detail(node['extra_info'])}".rstrip())

    for root in json.loads(row[1]) if row else ():
        visit(root)
    return steps


def _detail(info: Mapping[str, Any]) -> str:
    parts = []
    for key in _DETAILS:
        value = info.get(key) or []
        texts = value if isinstance(value, list) else [value]
        named = [text.removeprefix('memory."stored".') for text in texts if "#" not in text]
        if named:
            parts.append(", ".join(named))
    return f" {'; '.join(parts)}" if parts else ""


def _lift_line(lift: Lift) -> str:
    where = f" where {lift.sight.condition}" if lift.sight.condition else ""
    return f"  {lift.function:<20} of {lift.column}{where}"


def _table_lines(load: TableLoad) -> list[str]:
    wanted = load.cleaning.wanted
    lines = [
        f"read {load.table.name} from {', '.join(load.table.files)}",
        f"  columns of the file  {', '.join(wanted.columns)}",
        f"  clean                {load.table.origin}",
    ]
    if EVERYTHING not in load.sights:
        seen = " or ".join(dict.fromkeys(str(sight.condition) for sight in load.sights))
        lines.append(f"  keep rows            where {seen}")
    lines.append(f"  keep columns         {', '.join(load.kept) or '(only a count of rows)'}")
    lines += dict.fromkeys(map(_lift_line, load.lifts))
    lines += [f"  {name} = {select}" for name, select in load.key_sets]
    return [*lines, ""]
