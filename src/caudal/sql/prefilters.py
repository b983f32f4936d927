"""Prefilters: rows that need not be cleaned, because no query can see them and none is rejected.

Most rows of a large table are visible to no query (`footprint.py`), and one key is enough to tell.

Rules
1. A table's SQL is understood only if it is expressions over the columns of `raw`, in one SELECT or
   in nested ones. Then a row depends on no other row.
2. If an output is a column of `raw` unchanged, and the visible rows are those whose output is in a
   key set, the reader answers that with a *flag*, a further column of `raw`. A flag may be set
   although the key is not in the set, and is set for nulls: then a row is kept that no query sees.
3. A row is certainly not rejected if `reject` only asks whether columns of `raw` are null, and none
   of them is. Only such rows are dropped. All others are left to the SQL.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from caudal.model import REJECT
from caudal.sql.parsing import NOT_UNDERSTOOD, read_sql
from caudal.sql.table_needs import Flag

_RAW = "raw"
_MORE_THAN_A_ROW = (exp.AggFunc, exp.Window, exp.Select, exp.Star)


@dataclass(frozen=True)
class Projection:
    """A table's SQL that is understood: its SELECTs, from the outermost to the one over `raw`."""

    selects: tuple[exp.Select, ...]
    columns: frozenset[str]  # of `raw`

    def origin(self, output: str) -> str | None:
        """Return the column of `raw` that an output equals wherever that column is not null."""
        return self._origin(exp.column(output), -1)

    def copied(self, output: str) -> str | None:
        """Return the column of `raw` that an output is, unchanged in every row."""
        node: exp.Expr | None = exp.column(output)
        for level in range(len(self.selects)):
            node = self._output(node.name, level) if isinstance(node, exp.Column) else None
        return self._origin(node, len(self.selects) - 1) if isinstance(node, exp.Column) else None

    def present(self) -> tuple[str, ...] | None:
        """Return the columns of `raw` that are not null in a row that is kept; None if unknown."""
        reason, level = self._output(REJECT, 0), 0
        while isinstance(reason, exp.Column):
            reason, level = self._output(reason.name, level + 1), level + 1
        if not isinstance(reason, exp.Case) or reason.this or reason.args.get("default"):
            return None
        found = [self._nulls(branch.this, level) for branch in reason.args["ifs"]]
        columns = [column for branch in found for column in branch]
        return tuple(dict.fromkeys(filter(None, columns))) if all(columns) else None

    def carrying(self, flags: Sequence[Flag]) -> str:
        """Return the SQL with flags of `raw` as further outputs."""
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
        """Return the columns of `raw` of which one is null where the condition holds."""
        condition = condition.unnest()
        if isinstance(condition, exp.Or):
            return [*self._nulls(condition.left, level), *self._nulls(condition.right, level)]
        if isinstance(condition, exp.Is) and isinstance(condition.expression, exp.Null):
            return [self._origin(condition.this, level)]
        return [None]


def project(sql: str, columns: Iterable[str]) -> Projection | None:
    """Return the projection of a table's SQL over these columns of `raw`; None by rule 1."""
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
    """Return what a SELECT reads: a table, or the SELECT in its parentheses."""
    source = select.args["from_"].this if select.args.get("from_") else None
    if isinstance(source, exp.Subquery):
        given = {name for name, value in source.args.items() if value}
        return source.this if given <= {"this", "alias"} else None
    return source
