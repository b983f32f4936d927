"""`caudal explain` for the embedded engine: the tables to read, and the operators in order."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from caudal.duck.bind import TableLoad, bind, choose_queries
from caudal.duck.database import Connection, open_database
from caudal.duck.operators import PLUMBING, operator_word
from caudal.embedded.draw import details, draw_query
from caudal.kernels.sentiment import load_model
from caudal.model import Application, ParameterValue, Query
from caudal.sql.graph import Graph, PlanFormat, render
from caudal.sql.table_needs import ALL_ROWS, ComputedColumn


def explain_query(
    app: Application,
    name: str,
    parameters: Mapping[str, ParameterValue],
    form: PlanFormat = PlanFormat.TEXT,
) -> str:
    """Return the tables that one query reads, and the operators that its rows pass."""
    chosen, loads, roots = _planned(app, name, parameters)
    if form is not PlanFormat.TEXT:
        return render(draw_query(loads, roots, chosen), form)
    lines = [f"{app.name} {name}: {chosen.title}", "engine: embedded", ""]
    for load in loads:
        lines += _table_lines(load)
    lines.append("then")
    lines += [f"  {place:>2}. {step}" for place, step in enumerate(_steps(roots), start=1)]
    return "\n".join(lines)


def query_graph(app: Application, name: str, parameters: Mapping[str, ParameterValue]) -> Graph:
    """Return the graph of one query: its tables, and the operators that its rows pass."""
    chosen, loads, roots = _planned(app, name, parameters)
    return draw_query(loads, roots, chosen)


def _planned(
    app: Application, name: str, parameters: Mapping[str, ParameterValue]
) -> tuple[Query, Sequence[TableLoad], list[dict[str, Any]]]:
    """Return a query, the tables that it reads, and DuckDB's trees of operators."""
    chosen = choose_queries(app, [name], parameters)
    with open_database(load_model(app.sentiment)) as connection:
        binding = bind(app, chosen, parameters, connection)
        for load in binding.loads:
            for statement in load.create:
                connection.execute(statement)
        return chosen[0], binding.loads, _operator_trees(connection, binding.queries[0].sql)


def operator_steps(connection: Connection, sql: str) -> list[str]:
    """Return the operators of a query in the order in which rows pass them."""
    row = connection.execute(f"EXPLAIN (FORMAT json) {sql}").fetchone()
    return list(_steps(json.loads(row[1]) if row else []))


def _operator_trees(connection: Connection, sql: str) -> list[dict[str, Any]]:
    row = connection.execute(f"EXPLAIN (FORMAT json) {sql}").fetchone()
    return json.loads(row[1]) if row else []


def _steps(roots: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the operators of a query in the order in which rows pass them."""
    for node in roots:
        yield from _steps(node["children"])
        word = operator_word(node["name"])
        if word not in PLUMBING:
            yield f"{word:<8} {'; '.join(details(node['extra_info']))}".rstrip()


def _computed_column_line(computed: ComputedColumn) -> str:
    where = f" where {computed.visible_rows.condition}" if computed.visible_rows.condition else ""
    return f"  {computed.function:<20} of {computed.column}{where}"


def _table_lines(load: TableLoad) -> list[str]:
    wanted = load.cleaning.wanted
    lines = [
        f"read {load.table.name} from {', '.join(load.table.files)}",
        f"  columns of the file  {', '.join(wanted.columns)}",
        f"  clean                {load.table.origin}",
    ]
    if ALL_ROWS not in load.visible_rows:
        seen = " or ".join(dict.fromkeys(str(rows.condition) for rows in load.visible_rows))
        lines.append(f"  keep rows            where {seen}")
    lines.append(f"  keep columns         {', '.join(load.kept) or '(only a count of rows)'}")
    lines += dict.fromkeys(map(_computed_column_line, load.computed_columns))
    lines += [f"  {name} = {select}" for name, select in load.key_sets]
    return [*lines, ""]
