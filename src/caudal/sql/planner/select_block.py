"""A SELECT under construction.

Operators are added to it until one does not fit. Then it is sealed: it becomes the FROM of a new
SELECT. The columns of a sealed SELECT get marks for names. When a stage is closed, `canonical`
replaces the marks by numbered names, in the order of first appearance. So equal parts of different
queries have equal texts.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from caudal.sql.planner.algebra import Expr

_NAME = re.compile("\ue000\\d+\ue001")
_IDENTIFIER = re.compile('\ue000\\d+\ue001|"(?:[^"]|"")*"')
_ATOM = re.compile('[\ue000\ue001\\w]+|"(?:[^"]|"")*"|\'[^\']*\'')
RESERVED = re.compile(r"(__\d+|(scan|fold)\d+_.*)", re.IGNORECASE)
STAGE = re.compile(r"(scan|fold)\d+", re.IGNORECASE)


class ColumnNames:
    """Gives new marks for the columns of sealed SELECTs."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self) -> str:
        return f"\ue000{next(self._numbers)}\ue001"


def canonical(texts: Sequence[str]) -> list[str]:
    """Return the texts with names in place of marks, numbered by first appearance in all texts.

    >>> canonical(["b\ue0007\ue001 + b\ue0003\ue001", "b\ue0003\ue001"])
    ['b__1 + b__2', 'b__2']
    """
    known: dict[str, str] = {}

    def name(found: re.Match[str]) -> str:
        return known.setdefault(found.group(), f"__{len(known) + 1}")

    return [_NAME.sub(name, text) for text in texts]


def is_atom(text: str) -> bool:
    """Return whether the text needs no parentheses in any expression."""
    return _ATOM.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Return whether the text is the name of a column, not a literal or a word like TRUE.

    >>> is_name('"id"'), is_name("id"), is_name("7"), is_name("NULL")
    (True, False, False, False)
    """
    return _IDENTIFIER.fullmatch(text) is not None


def atom(text: str) -> str:
    return text if is_atom(text) else f"({text})"


@dataclass(frozen=True)
class SelectBlock:
    """A SELECT. `columns` maps the query's columns to expressions over `source`."""

    source: str
    columns: dict[int, str]
    table: str | None = None  # the table that a scan reads
    where: tuple[str, ...] = ()
    group: tuple[str, ...] | None = None
    having: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    limit: int | None = None
    offset: int = 0
    operators: tuple[str, ...] = ()
    costly: frozenset[int] = field(default_factory=frozenset)  # columns to be evaluated only once
    raising: frozenset[str] = frozenset()  # expressions that can raise an error
    is_join: bool = False  # the source is a join, not one relation

    def text(self, expr: Expr) -> str:
        """Return the text of an expression over this block's source."""
        return expr.over(lambda column: atom(self.columns[column]))

    def did(self, *operators: str) -> "SelectBlock":
        new = [operator for operator in operators if operator not in self.operators[-1:]]
        return replace(self, operators=(*self.operators, *new))

    @property
    def is_cut(self) -> bool:
        return self.limit is not None or self.offset > 0 or bool(self.order)

    def is_simple(self, needed: Iterable[int], *, null_extended: bool) -> bool:
        """Return whether a join may read the source itself, and the needed columns above the join.

        For that all rows of the source must be kept. Above a join that null-extends the source, its
        columns become null, but a literal or any other expression may not.
        """
        given = self.where or self.having or self.is_cut or self.group is not None
        stays = is_name if null_extended else is_atom
        return not given and all(stays(self.columns[c]) for c in needed)

    def body(self) -> str:
        """Return everything after the SELECT list."""
        parts = [f"FROM {self.source}"]
        if self.where:
            parts.append("WHERE " + " AND ".join(map(_joined, self.where)))
        if self.group:
            parts.append("GROUP BY " + ", ".join(self.group))
        if self.having:
            parts.append("HAVING " + " AND ".join(map(_joined, self.having)))
        if self.order:
            parts.append("ORDER BY " + ", ".join(self.order))
        if self.limit is not None:
            parts.append(f"LIMIT {self.limit}")
        if self.offset:
            parts.append(f"OFFSET {self.offset}")
        return " ".join(parts)

    def select(self, listed: Sequence[tuple[str, str]]) -> str:
        """Return the SELECT of these pairs of expression and name."""
        items = ", ".join(f"{text} AS {name}" for text, name in listed) or "1 AS one"
        return f"SELECT {items} {self.body()}"

    def sealed(
        self, needed: Iterable[int], names: ColumnNames, *extra: tuple[int, str]
    ) -> "SelectBlock":
        """Return a block whose source is this SELECT. `extra` columns are added to its list."""
        kept = (
            self.columns
            if self.group is not None
            else {
                column: self.columns[column]
                for column in sorted(set(needed))
                if column in self.columns
            }
        )
        listed = [*kept.items(), *extra]
        new = {column: names.new() for column, _ in listed}
        items = [(text, new[column]) for column, text in listed]
        inner = f"({self.select(items)})"
        return SelectBlock(inner, new, table=self.table, operators=self.operators)

    def filtered(self, expr: Expr, needed: Iterable[int], names: ColumnNames) -> "SelectBlock":
        kept = {*needed, *expr.columns}
        if self.is_cut or (expr.columns & self.costly):
            return self.sealed(kept, names).filtered(expr, needed, names)
        done = self.did("filter", *sorted(expr.costly))
        if self.group is not None:
            return replace(done, having=(*self.having, self.text(expr)))
        return replace(done, where=(*self.where, self.text(expr)))

    def extended(self, computed: dict[int, Expr]) -> "SelectBlock":
        new = {column: self.text(expr) for column, expr in computed.items()}
        costly = {column for column, expr in computed.items() if expr.costly}
        costly |= {c for c, expr in computed.items() if expr.columns & self.costly}
        names = sorted({name for expr in computed.values() for name in expr.costly})
        raising = {new[column] for column, expr in computed.items() if not expr.safe}
        return replace(
            self.did("project", *names),
            columns={**self.columns, **new},
            costly=self.costly | costly,
            raising=self.raising | raising,
        )

    def may_fail(self, texts: Iterable[str]) -> bool:
        """Return whether one of the texts holds an expression that can raise an error."""
        return any(one in text for text in texts for one in self.raising if not is_atom(one))

    def topped(self, order: Sequence[str], limit: int | None, offset: int) -> "SelectBlock":
        return replace(
            self.did("top" if limit is not None else "order"),
            order=tuple(order), limit=limit, offset=offset,
        )  # fmt: skip

    def only(self, columns: dict[int, str]) -> "SelectBlock":
        return replace(self, columns=columns)


def _joined(text: str) -> str:
    return atom(text)
