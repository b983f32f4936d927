"""The small algebra into which a query is read before it is cut into stages.

Every column has a number that is unique in its query, so that an expression means the same wherever
it stands. Inside an expression's text a column is written as a mark (`mark`), and an uncorrelated
subquery as another (`subquery_mark`); both use characters that no query may contain.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from caudal.sql.planner.types import Type

_COLUMN = re.compile("\ue010(\\d+)\ue011")
_SUBQUERY = re.compile("\ue020(\\d+)\ue021")
PRIVATE = re.compile("[\ue000-\ue0ff]")

JoinKind = Literal["INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"]
Side = Literal["left", "right"]


def mark(column: int) -> str:
    return f"\ue010{column}\ue011"


def subquery_mark(number: int) -> str:
    return f"\ue020{number}\ue021"


@dataclass(frozen=True)
class Expr:
    """An expression over columns of the query."""

    text: str
    type: Type = None
    costly: frozenset[str] = frozenset()  # Caudal's own functions in it: evaluate it once
    sides: "tuple[Expr, Expr] | None" = None  # of an equality that cannot raise
    safe: bool = False  # it gives a value for every row (`caudal.sql.error_free`)
    mixed: bool = False  # an equality of types of which one is cast, which may fail

    @property
    def may_move(self) -> bool:
        """Whether it is a condition that may be evaluated earlier than its author wrote it."""
        return self.safe and self.type == "BOOLEAN" and not self.subqueries

    @property
    def columns(self) -> frozenset[int]:
        return frozenset(int(number) for number in _COLUMN.findall(self.text))

    @property
    def subqueries(self) -> list[int]:
        return [int(number) for number in _SUBQUERY.findall(self.text)]

    def over(self, names: Callable[[int], str]) -> str:
        """The text with every column replaced."""
        return _COLUMN.sub(lambda found: names(int(found.group(1))), self.text)


def with_subqueries(text: str, names: Callable[[int], str]) -> str:
    return _SUBQUERY.sub(lambda found: names(int(found.group(1))), text)


def column_of(text: str) -> int | None:
    """The column, if the text is a column and nothing else."""
    found = _COLUMN.fullmatch(text)
    return int(found.group(1)) if found else None


@dataclass(frozen=True)
class TableScan:
    table: str
    columns: dict[int, str]


@dataclass(frozen=True)
class Constant:
    """Rows that the query's text itself holds; without columns, one row of nothing."""

    columns: tuple[int, ...] = ()
    rows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Filter:
    child: "Node"
    predicate: Expr


@dataclass(frozen=True)
class Extend:
    """The child's columns and some computed ones."""

    child: "Node"
    computed: dict[int, Expr]


@dataclass(frozen=True)
class Windows:
    """The child's columns and window functions over its rows.

    `partitions` are columns by which every one of them is partitioned: rows that differ in these
    never see each other.
    """

    child: "Node"
    computed: dict[int, Expr]
    partitions: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Unnest:
    """One row per element of a list; none for an empty or null one."""

    child: "Node"
    column: int
    expr: Expr


@dataclass(frozen=True)
class Join:
    """A join. What each kind does with rows that have no partner is answered here, once.

    | kind | null-extends | needs a partner |
    |---|---|---|
    | INNER | neither side | left, right |
    | LEFT | right | right |
    | RIGHT | left | left |
    | FULL | left, right | neither side |
    | SEMI | neither side | left, right |
    | ANTI | neither side | right |
    """

    left: "Node"
    right: "Node"
    kind: JoinKind
    conditions: tuple[Expr, ...]

    def null_extends(self, side: Side) -> bool:
        """Return whether the join gives rows with nulls in place of this side's columns."""
        return self.kind == "FULL" or self.kind == ("RIGHT" if side == "left" else "LEFT")

    def needs_partner(self, side: Side) -> bool:
        """Return whether a row of this side that has no partner changes nothing."""
        if side == "left":
            return self.kind in ("INNER", "RIGHT", "SEMI")
        return self.kind in ("INNER", "LEFT", "SEMI", "ANTI")


@dataclass(frozen=True)
class FunctionCall:
    """An aggregate: its name, arguments, and the clauses that may stand with it."""

    name: str
    arguments: tuple[Expr, ...]
    distinct: bool = False
    order: tuple[tuple[Expr, str], ...] = ()
    condition: Expr | None = None
    type: Type = None

    def expressions(self) -> Iterator[Expr]:
        yield from self.arguments
        yield from (expr for expr, _ in self.order)
        if self.condition is not None:
            yield self.condition


@dataclass(frozen=True)
class Aggregate:
    child: "Node"
    keys: tuple[int, ...]
    calls: dict[int, FunctionCall]


@dataclass(frozen=True)
class Union:
    """All rows of each child; `columns[i]` of the output is `inputs[c][i]` of child c."""

    children: tuple["Node", ...]
    inputs: tuple[tuple[int, ...], ...]
    columns: tuple[int, ...]


@dataclass(frozen=True)
class SetOperation:
    """EXCEPT or INTERSECT, with or without ALL."""

    left: "Node"
    right: "Node"
    operation: str
    inputs: tuple[tuple[int, ...], tuple[int, ...]]
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Top:
    """Rows in order, cut; `limit` None means all of them."""

    child: "Node"
    order: tuple[tuple[Expr, str], ...]
    limit: int | None
    offset: int = 0


Node = (
    TableScan | Constant | Filter | Extend | Windows | Unnest | Join | Aggregate | Union
    | SetOperation | Top
)  # fmt: skip


@dataclass(frozen=True)
class Output:
    """A column that a query gives, under the name by which others may call it."""

    name: str | None
    column: int


@dataclass(frozen=True)
class Relation:
    node: Node
    outputs: tuple[Output, ...]


def renamed(relation: Relation, names: tuple[str, ...]) -> Relation:
    """The relation with the column names that its alias lists."""
    outputs = tuple(
        Output(names[place] if place < len(names) else output.name, output.column)
        for place, output in enumerate(relation.outputs)
    )
    return Relation(relation.node, outputs)


def columns_of(node: Node) -> frozenset[int]:
    """The columns that a node gives."""
    match node:
        case TableScan() | Constant() | Union() | SetOperation():
            return frozenset(node.columns)
        case Filter() | Top():
            return columns_of(node.child)
        case Extend() | Windows():
            return columns_of(node.child) | node.computed.keys()
        case Unnest():
            return columns_of(node.child) | {node.column}
        case Join(kind="SEMI" | "ANTI"):
            return columns_of(node.left)
        case Join():
            return columns_of(node.left) | columns_of(node.right)
        case Aggregate():
            return frozenset(node.keys) | node.calls.keys()


def with_children(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node over children that were changed."""
    match node:
        case TableScan() | Constant():
            return node
        case Join() | SetOperation():
            return replace(node, left=change(node.left), right=change(node.right))
        case Union():
            return replace(node, children=tuple(map(change, node.children)))
        case _:
            return replace(node, child=change(node.child))


@dataclass
class Context:
    """The numbers and types given out while one query is read."""

    functions: dict[str, str]
    types: dict[int, Type] = field(default_factory=dict)
    subqueries: dict[int, Relation] = field(default_factory=dict)

    def column(self, kind: Type) -> int:
        number = len(self.types) + 1
        self.types[number] = kind
        return number

    def subquery(self, relation: Relation) -> int:
        number = len(self.subqueries) + 1
        self.subqueries[number] = relation
        return number
