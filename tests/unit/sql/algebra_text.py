"""The planner's algebra as indented text, for examples."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from caudal.sql.planner.algebra import (
    Aggregate,
    Constant,
    Expr,
    Extend,
    Filter,
    FunctionCall,
    Join,
    Node,
    Relation,
    SetOperation,
    TableScan,
    Top,
    Union,
    Unnest,
    Windows,
)


def algebra_text(relation: Relation, node: Node) -> str:
    """Return the text of a node. Columns have the names of the table or of the query's outputs;
    others are numbered (#1) from the top of the text."""
    names = {one.column: one.name for one in relation.outputs if one.name is not None}
    return "\n".join(_Writer(names).lines(node))


@dataclass
class _Writer:
    names: dict[int, str]
    _numbers: dict[int, int] = field(default_factory=dict)

    def lines(self, node: Node) -> Iterator[str]:
        children = _children(node)
        for child in children:
            self._name_scans(child)
        if isinstance(node, TableScan):
            self._name_scans(node)
        yield self._line(node)
        for child in children:
            yield from (f"  {line}" for line in self.lines(child))

    def _name_scans(self, node: Node) -> None:
        if isinstance(node, TableScan):
            self.names.update({c: f"{node.table}.{name}" for c, name in node.columns.items()})
        for child in _children(node):
            self._name_scans(child)

    def _line(self, node: Node) -> str:
        match node:
            case TableScan():
                return f"scan {node.table}"
            case Constant():
                return f"values {', '.join(node.rows)}".rstrip()
            case Filter():
                return f"filter {self._text(node.predicate)}"
            case Extend():
                return f"compute {self._named(node.computed)}"
            case Windows():
                return f"window {self._named(node.computed)}"
            case Unnest():
                return f"unnest {self._named({node.column: node.expr})}"
            case Join():
                on = " and ".join(map(self._text, node.conditions))
                return f"{node.kind.lower()} join" + (f" on {on}" if on else "")
            case Aggregate():
                keys = ", ".join(map(self._column, node.keys)) or "nothing"
                calls = ", ".join(self._call(c, call) for c, call in node.calls.items())
                return f"group by {keys}" + (f": {calls}" if calls else "")
            case Union():
                return "union all"
            case SetOperation():
                return node.operation.lower()
            case Top():
                order = ", ".join(self._text(expr) + way for expr, way in node.order)
                return f"order by {order} limit {node.limit} offset {node.offset}"

    def _named(self, computed: dict[int, Expr]) -> str:
        return ", ".join(f"{self._column(c)} = {self._text(e)}" for c, e in computed.items())

    def _call(self, column: int, call: FunctionCall) -> str:
        inside = ", ".join(map(self._text, call.arguments)) or "*"
        text = f"{call.name}({inside})"
        unnamed = column not in self.names and inside == "*"
        return text if unnamed else f"{self._column(column)} = {text}"

    def _text(self, expr: Expr) -> str:
        if expr.sides is not None:
            return " = ".join(map(self._text, expr.sides))
        return expr.over(self._column)

    def _column(self, column: int) -> str:
        if column in self.names:
            return self.names[column]
        return f"#{self._numbers.setdefault(column, len(self._numbers) + 1)}"


def _children(node: Node) -> tuple[Node, ...]:
    match node:
        case TableScan() | Constant():
            return ()
        case Join() | SetOperation():
            return (node.left, node.right)
        case Union():
            return node.children
        case _:
            return (node.child,)
