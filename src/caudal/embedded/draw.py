"""Draws the path of rows in the embedded engine: the tables as they are read, then DuckDB's
operators."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from caudal.duck.bind import TableLoad
from caudal.duck.operators import PLUMBING, operator_word
from caudal.model import Query
from caudal.sql.graph import Edge, Graph, Node, NodeShape
from caudal.sql.parsing import NOT_UNDERSTOOD, read_sql
from caudal.sql.table_needs import ALL_ROWS

_READING, _DUCKDB = "while files are read", "DuckDB"
_STORED = 'memory."stored".'
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


def draw_query(loads: Sequence[TableLoad], roots: Sequence[dict[str, Any]], query: Query) -> Graph:
    """Return the graph of one query: the tables that it reads, and DuckDB's operators."""
    drawing = _Drawing({load.table.name for load in loads})
    for load in loads:
        drawing.add_table(load)
    given = [source for root in roots for source in drawing.visit(root)]
    answer = drawing.step("answer", (query.name, query.title), NodeShape.ANSWER)
    drawing.connect(given, answer)
    return Graph(tuple(drawing.nodes), tuple(drawing.edges))


def details(info: Mapping[str, Any]) -> list[str]:
    """Return the operands of an operator, as far as DuckDB names them."""
    parts = []
    for key in _DETAILS:
        value = info.get(key) or []
        texts = value if isinstance(value, list) else [value]
        named = [text.removeprefix(_STORED) for text in texts if "#" not in text]
        if named:
            parts.append(", ".join(named))
    return parts


@dataclass
class _Drawing:
    tables: set[str]
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    ctes: dict[str, str] = field(default_factory=dict)  # DuckDB's index -> node

    def step(
        self, name: str, lines: Sequence[str], shape: NodeShape = NodeShape.STEP, group: str = ""
    ) -> str:
        self.nodes.append(Node(name, tuple(lines), shape, group))
        return name

    def connect(self, sources: Sequence[str], target: str) -> str:
        self.edges += [Edge(source, target) for source in sources]
        return target

    def add_table(self, load: TableLoad) -> None:
        name = load.table.name
        self.step(_table(name), _table_lines(load), NodeShape.TABLE, _READING)
        read = {table for _, sql in load.key_sets for table in _tables_of(sql)}
        for other in sorted(read & self.tables - {name}):
            self.edges.append(Edge(_table(other), _table(name), "keys", is_dotted=True))

    def visit(self, node: dict[str, Any]) -> list[str]:
        """Add an operator and those below it; return the nodes whose rows it gives."""
        info, word = node["extra_info"], operator_word(node["name"])
        children = node["children"]
        if word == "cte" and len(children) == 2:
            sources = self.visit(children[0])
            made = self._operator(f"with {info.get('CTE Name', '')}", [])
            self.ctes[info.get("Table Index", "")] = self.connect(sources, made)
            return self.visit(children[1])
        if word == "cte scan" and info.get("CTE Index") in self.ctes:
            return [self.ctes[info["CTE Index"]]]
        sources = [source for child in children for source in self.visit(child)]
        if word in PLUMBING:
            return sources
        table = str(info.get("Table", "")).removeprefix(_STORED).strip('"')
        if word == "read" and table in self.tables:
            sources.append(_table(table))
        return [self.connect(sources, self._operator(word, details(info)))]

    def _operator(self, word: str, lines: Sequence[str]) -> str:
        return self.step(f"operator {len(self.nodes)}", [word, *lines], group=_DUCKDB)


def _tables_of(sql: str) -> set[str]:
    try:
        return {table.name for table in read_sql(sql).find_all(exp.Table)}
    except NOT_UNDERSTOOD:  # the graph then lacks an edge
        return set()


def _table(name: str) -> str:
    return f"table {name}"


def _table_lines(load: TableLoad) -> list[str]:
    lines = [load.table.name, f"columns {', '.join(load.cleaning.wanted.columns)}"]
    if ALL_ROWS not in load.visible_rows:
        seen = " or ".join(dict.fromkeys(str(rows.condition) for rows in load.visible_rows))
        lines.append(f"keep rows where {seen}")
    lines.append(f"keep {', '.join(load.kept) or 'only a count of rows'}")
    return [*lines, *dict.fromkeys(f"compute {one.name}" for one in load.computed_columns)]
