"""Rows that need not be cleaned at all: those that are certainly sound and certainly out of sight.

Most rows of a large table are of no interest to any query, and a look at one key tells. Rules:
1. Only a table whose SQL is nothing but expressions over the columns of `raw`, in one SELECT or
   in several inside each other, is understood: there a row depends on no other row.
2. Where an output is a column of `raw` as it stands, and a sight asks whether it is in a key set,
   the reader answers that with a *flag*, a further column of `raw`. It may say yes where the truth
   is no (and does so for nulls): then a row is kept that no query sees.
3. A row is certainly sound if `reject` only asks whether columns of `raw` are null, and none is.
   Only such rows are dropped; all others are left to the SQL.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from caudal.model import REJECT
from caudal.sql.parsing import NOT_UNDERSTOOD, read_sql

_RAW = "raw"
_MORE_THAN_A_ROW = (exp.AggFunc, exp.Window, exp.Select, exp.Star)


@dataclass(frozen=True)
class Flag:
    """A column of `raw` that says of another one whether it may be in a key set."""

    column: str
    keys: str

    @property
    def name(self) -> str:
        return f"{self.column} in {self.keys}"


@dataclass(frozen=True)
class Prefilter:
    """The flags of a table, and which rows to drop: those where all of `present` are there, and of
    no sight all flags are set."""

    flags: tuple[Flag, ...] = ()
    present: tuple[str, ...] = ()
    sights: tuple[tuple[Flag, ...], ...] = ((),)  # a sight without flags sees everything

    @property
    def drops(self) -> bool:
        """May it drop a row?"""
        return () not in self.sights

    @property
    def columns(self) -> frozenset[str]:
        """The columns of `raw` that it looks at."""
        return frozenset([*self.present, *(flag.column for flag in self.flags)])


@dataclass(frozen=True)
class Projection:
    """A table's SQL that is understood: its SELECTs from the outermost to that over `raw`."""

    selects: tuple[exp.Select, ...]
    columns: frozenset[str]  # of `raw`

    def origin(self, output: str) -> str | None:
        """The column of `raw` that an output is, wherever that column is not null."""
        return self._origin(exp.column(output), -1)

    def present(self) -> tuple[str, ...] | None:
        """The columns of `raw` that a row needs in order not to be rejected; None if unknown."""
        reason, level = self._output(REJECT, 0), 0
        while isinstance(reason, exp.Column):
            reason, level = self._output(reason.name, level + 1), level + 1
        if not isinstance(reason, exp.Case) or reason.this or reason.args.get("default"):
            return None
        found = [self._nulls(branch.this, level) for branch in reason.args["ifs"]]
        columns = [column for branch in found for column in branch]
        return tuple(dict.fromkeys(filter(None, columns))) if all(columns) else None

    def carrying(self, flags: Sequence[Flag]) -> str:
        """The SQL with flags of `raw` as further outputs."""
        select: exp.Expr | None = (whole := self.selects[0].copy())
        while isinstance(select, exp.Select):
            source = _source(select)
            table = None if isinstance(source, exp.Select) else _RAW
            for flag in flags:
                name = exp.to_identifier(flag.name, quoted=True)
                select.append("expressions", exp.column(name, table=table))
            select = source
        return whole.sql(dialect="duckdb")

    def _output(self, name: str, level: int) -> exp.Expr | None:
        if level >= len(self.selects):
            return None
        found = (one for one in self.selects[level].expressions if one.alias_or_name == name)
        output = next(found, None)
        return output.unalias() if output is not None else None

    def _origin(self, node: exp.Expr | None, level: int) -> str | None:
        if isinstance(node, exp.Coalesce):
            node = node.this
        if not isinstance(node, exp.Column):
            return None
        if level + 1 == len(self.selects):
            known = node.table in ("", _RAW) and node.name in self.columns
            return node.name if known else None
        return self._origin(self._output(node.name, level + 1), level + 1)

    def _nulls(self, condition: exp.Expr, level: int) -> list[str | None]:
        """The columns of `raw` of which one is null where the condition holds."""
        condition = condition.unnest()
        if isinstance(condition, exp.Or):
            return [*self._nulls(condition.left, level), *self._nulls(condition.right, level)]
        if isinstance(condition, exp.Is) and isinstance(condition.expression, exp.Null):
            return [self._origin(condition.this, level)]
        return [None]


def project(sql: str, columns: Iterable[str]) -> Projection | None:
    """A table's SQL over these columns of `raw`, if it is understood (rule 1)."""
    try:
        source: exp.Expr | None = read_sql(sql)
    except NOT_UNDERSTOOD:
        return None
    selects: list[exp.Select] = []
    while isinstance(source, exp.Select) and _is_plain(source):
        selects.append(source)
        source = _source(source)
    whole = isinstance(source, exp.Table) and source.sql(dialect="duckdb") == _RAW
    return Projection(tuple(selects), frozenset(columns)) if selects and whole else None


def _is_plain(select: exp.Select) -> bool:
    given = {name for name, value in select.args.items() if value}
    return given <= {"expressions", "from_"} and not any(
        output.find(*_MORE_THAN_A_ROW) for output in select.expressions
    )


def _source(select: exp.Select) -> exp.Expr | None:
    """What a SELECT reads: a table, or the SELECT in its parentheses."""
    source = select.args["from_"].this if select.args.get("from_") else None
    if isinstance(source, exp.Subquery):
        given = {name for name, value in source.args.items() if value}
        return source.this if given <= {"this", "alias"} else None
    return source
