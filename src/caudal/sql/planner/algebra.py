"""The algebra: the tree of operators into which a query is read before it is cut into stages.

Every column has a number that is unique in its query, so an expression means the same at every
place in the tree. Inside the text of an expression, a column is a mark that holds its number
(`mark`), and an uncorrelated subquery is another mark (`subquery_mark`). Marks use characters that
no query may contain.
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
    costly: frozenset[str] = frozenset()  # functions of Caudal that it calls: evaluate it once
    sides: "tuple[Expr, Expr] | None" = None  # both sides of an equality that cannot raise
    safe: bool = False  # it cannot raise an error on any row (`caudal.sql.error_free`)
    mixed: bool = False  # an equality of different types: the cast of one side may fail

    @property
    def may_move(self) -> bool:
        """Return whether it is a condition that may be evaluated earlier than written."""
        return self.safe and self.type == "BOOLEAN" and not self.subqueries

    @property
    def columns(self) -> frozenset[int]:
        return frozenset(int(number) for number in _COLUMN.findall(self.text))

    @property
    def subqueries(self) -> list[int]:
        return [int(number) for number in _SUBQUERY.findall(self.text)]

    def over(self, names: Callable[[int], str]) -> str:
        """Return the text with a name in place of every column."""
        return _COLUMN.sub(lambda found: names(int(found.group(1))), self.text)


def with_subqueries(text: str, names: Callable[[int], str]) -> str:
    return _SUBQUERY.sub(lambda found: names(int(found.group(1))), text)


def column_of(text: str) -> int | None:
    """Return the column that a text consists of; None if it is anything else."""
    found = _COLUMN.fullmatch(text)
    return int(found.group(1)) if found else None


@dataclass(frozen=True)
class TableScan:
    table: str
    columns: dict[int, str]


@dataclass(frozen=True)
class Constant:
    """Rows that are written in the query; without columns, one row without values."""

    columns: tuple[int, ...] = ()
    rows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Filter:
    child: "Node"
    predicate: Expr


@dataclass(frozen=True)
class Extend:
    """The child's columns and further ones, computed row by row."""

    child: "Node"
    computed: dict[int, Expr]


@dataclass(frozen=True)
class Windows:
    """The child's columns and window functions over its rows.

    `partitions` are the columns by which all of the functions are partitioned. So rows with
    different values in them never influence each other.
    """

    child: "Node"
    computed: dict[int, Expr]
    partitions: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Unnest:
    """One row per element of a list; no row for a list that is empty or null."""

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
    """An aggregate function: its name, its arguments and its clauses."""

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
    """Rows in order, cut by LIMIT and OFFSET. A `limit` of None means no limit.

    `ties` are all columns that the cut SELECT gives. They decide among rows that tie, also if a
    reader needs only some of them: every reader of a common table must see the same rows.
    """

    child: "Node"
    order: tuple[tuple[Expr, str], ...]
    limit: int | None
    offset: int = 0
    ties: tuple[int, ...] = ()

    @property
    def cuts(self) -> bool:
        return self.limit is not None or self.offset > 0


Node = (
    TableScan | Constant | Filter | Extend | Windows | Unnest | Join | Aggregate | Union
    | SetOperation | Top
)  # fmt: skip


@dataclass(frozen=True)
class Output:
    """A column that a query gives, and its name."""

    name: str | None
    column: int


@dataclass(frozen=True)
class Relation:
    node: Node
    outputs: tuple[Output, ...]


def rename(relation: Relation, names: tuple[str, ...]) -> Relation:
    """Return the relation with the column names that its alias lists."""
    outputs = tuple(
        Output(names[place] if place < len(names) else output.name, output.column)
        for place, output in enumerate(relation.outputs)
    )
    return Relation(relation.node, outputs)


def columns_of(node: Node) -> frozenset[int]:
    """Return the columns that a node gives."""
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
    """Return the node with each child replaced by what `change` makes of it."""
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
    """The columns and subqueries of one query, by their numbers."""

    functions: dict[str, str]
    types: dict[int, Type] = field(default_factory=dict)
    subqueries: dict[int, Relation] = field(default_factory=dict)
    stored: set[str] = field(default_factory=set)  # folded names of columns of the tables it reads

    def column(self, kind: Type) -> int:
        number = len(self.types) + 1
        self.types[number] = kind
        return number

    def subquery(self, relation: Relation) -> int:
        number = len(self.subqueries) + 1
        self.subqueries[number] = relation
        return number
