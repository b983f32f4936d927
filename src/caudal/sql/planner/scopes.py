"""Scopes: which column a name means, by DuckDB's rules.

DuckDB resolves names case-insensitively. A name that could mean two columns raises
UnsupportedError. So does a name that is both a column and an alias, in clauses where it is not
clear which of them DuckDB takes. Such a query is gathered.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sqlglot import exp

from caudal.sql.planner.algebra import Context, Output, Relation, mark
from caudal.sql.planner.dialect import UnsupportedError
from caudal.sql.planner.plan import TableSchema
from caudal.sql.quoting import folded


class QueryEnvironment(Protocol):
    """The tables and common table expressions that a query may name, and how to read a query."""

    @property
    def context(self) -> Context: ...

    @property
    def tables(self) -> Mapping[str, tuple[str, TableSchema]]: ...

    def query(self, query: exp.Expr) -> Relation: ...

    def named(self, name: str) -> Relation | None: ...


@dataclass(frozen=True)
class ScopeSource:
    """An item of FROM, with its alias."""

    alias: str | None
    outputs: tuple[Output, ...]

    def named(self, name: str) -> list[Output]:
        return [o for o in self.outputs if o.name is not None and folded(o.name) == name]


@dataclass
class Scope:
    """The names that an expression may use."""

    sources: list[ScopeSource] = field(default_factory=list)
    star: list[Output] = field(default_factory=list)  # the columns of `*`, in order
    merged: dict[str, int] = field(default_factory=dict)  # the columns of USING, by name
    parent: "Scope | None" = None

    def columns(self) -> set[int]:
        own = {output.column for source in self.sources for output in source.outputs}
        return own | set(self.merged.values())

    def find(self, name: str, table: str = "") -> int | None:
        """Return the column of this name in this scope; its parent is not searched."""
        wanted = folded(name)
        if not table and wanted in self.merged:
            return self.merged[wanted]
        found = [output for source in self._sources(table) for output in source.named(wanted)]
        if len(found) > 1:
            raise UnsupportedError(f"the name {name} could mean several columns")
        return found[0].column if found else None

    def _sources(self, table: str) -> Iterable[ScopeSource]:
        if not table:
            return self.sources
        wanted = folded(table)
        return [source for source in self.sources if folded(source.alias or "") == wanted]

    def has_source(self, table: str) -> bool:
        return any(True for _ in self._sources(table))

    def star_of(self, table: str) -> list[Output]:
        found = list(self._sources(table))
        if len(found) != 1:
            raise UnsupportedError(f"{table}.* is not the star of one table")
        return list(found[0].outputs)


def resolve(column: exp.Column, scope: Scope) -> exp.Expr:
    """Return the mark of a column, or a field of the mark of a struct column."""
    if column.args.get("db") or isinstance(column.this, exp.Star):
        raise UnsupportedError(f"the name {column.sql()} has too many parts")
    level: Scope | None = scope
    while level is not None:
        number = level.find(column.name, column.table)
        if number is not None:
            return column_mark(number)
        if column.table and not level.has_source(column.table):
            struct = level.find(column.table)
            if struct is not None:
                return exp.Dot(
                    this=exp.Paren(this=column_mark(struct)), expression=column.this.copy()
                )
        level = level.parent
    raise UnsupportedError(f"{column.sql()} is not a column of its own SELECT")


def column_mark(number: int) -> exp.Column:
    return exp.Column(this=exp.Identifier(this=mark(number), quoted=False))
