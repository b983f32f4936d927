"""A query's footprint: which rows of each table it can see, and which calls to compute early.

The embedded engine computes and keeps nothing else while it reads the files. The footprint rests on
the planner's own analysis: how a query is read (`sql/planner/query_reader.py`), when a reading is
trusted (`planner/known_syntax.py`), where filters may move (`planner/push_filters.py`) and what a
join does with rows that have no partner (`planner/algebra.py`). The split engine answers the same
question from its stages: filters end up in its scans, and `planner/hints.py` compares keys.

Rules
1. Unless a query is understood as a whole, every row of every table is visible and no call is
   computed early: slower, never wrong. DuckDB must also scan each table as often as the query
   names it.
2. The *visible rows* of a scan are those that can change the answer. They pass the filters directly
   above the scan, after filters were pushed down. Where a join needs a partner from a table that is
   read earlier, their key is among the keys of that table. A row that is visible to no scan of any
   query is not kept.
3. A condition is used only if it cannot raise an error, because it is evaluated on rows that the
   query may never reach. A key is compared only with keys of the same type.
4. A call such as `sentiment(text)` of a column becomes a *computed column* of the table. It is
   computed once for all queries, for the rows that are visible to a scan of the query. Then the
   text itself need not be kept. DuckDB must give the rewritten query the same types
   (`duck/bind.py`). A call on rows that an outer join extends with nulls stays a call: it has a
   value for a null, which the column would not have.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from caudal.sql.error_free import cannot_raise, of_columns
from caudal.sql.parsing import NOT_UNDERSTOOD, read_sql
from caudal.sql.planner import dialect
from caudal.sql.planner.algebra import (
    Aggregate,
    Constant,
    Context,
    Expr,
    Extend,
    Filter,
    Join,
    Node,
    SetOperation,
    Side,
    TableScan,
    Top,
    Union,
    Unnest,
    Windows,
    column_of,
    columns_of,
)
from caudal.sql.planner.dialect import UnsupportedError
from caudal.sql.planner.known_syntax import require_understood
from caudal.sql.planner.push_filters import push_filters
from caudal.sql.planner.query_reader import read_query
from caudal.sql.quoting import folded, quote
from caudal.sql.table_needs import (
    EXPENSIVE,
    ComputedColumn,
    Footprint,
    KeyMembership,
    Schemas,
    VisibleRows,
)


@dataclass(frozen=True)
class DuckDBReading:
    """What DuckDB tells about a query."""

    scans: Mapping[str, int]  # how often it scans each table
    is_same: Callable[[str, str], bool]  # are two texts the same statement?


def analyze(
    sql: str, schemas: Schemas, functions: Mapping[str, str], duckdb: DuckDBReading
) -> Footprint:
    """Return the footprint. `functions` are those that Caudal adds to SQL, with their types."""
    try:
        tree = dialect.parse(sql)
        if not _is_accounted_for(tree, schemas, duckdb.scans):
            return Footprint(sql)
        require_understood(sql, tree, lambda text, read: duckdb.is_same(text, dialect.text(read)))
        visible_rows = _Analyzer(schemas, functions).visible_rows(tree)
        changed, computed = _extract_computed_columns(tree, schemas, visible_rows)
    except (UnsupportedError, *NOT_UNDERSTOOD, LookupError):
        return Footprint(sql)
    return Footprint(dialect.text(changed) if computed else sql, computed, visible_rows)


def output_names(sql: str) -> list[str]:
    """Return the names of a SELECT's columns as they were written; none if they are not known."""
    try:
        tree = read_sql(sql)
        return list(tree.named_selects) if isinstance(tree, exp.Query) else []
    except NOT_UNDERSTOOD:
        return []


def _is_accounted_for(tree: exp.Query, schemas: Schemas, scans: Mapping[str, int]) -> bool:
    """Return whether DuckDB scans each table exactly as often as the tree names it.

    A common table expression with the name of a table makes the count of names meaningless.
    """
    known = {folded(name) for name in schemas}
    if any(folded(common.alias) in known for common in tree.find_all(exp.CTE)):
        return False
    named = Counter(
        folded(table.name)
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier) and folded(table.name) in known
    )
    return named == Counter({folded(name): count for name, count in scans.items()})


@dataclass(frozen=True)
class _KeyPair:
    """A column of one scan whose values must be among those of a column of another scan."""

    mine: int
    theirs: int


@dataclass(frozen=True)
class _VisibleScan:
    """A scan of a table, the filters directly above it, and the keys it is joined by."""

    node: TableScan
    filters: tuple[Expr, ...]
    pairs: tuple[_KeyPair, ...]


@dataclass
class _Analyzer:
    """Finds the scans of a query and what is asked of their rows."""

    schemas: Schemas
    functions: Mapping[str, str]

    def visible_rows(self, tree: exp.Query) -> dict[str, tuple[VisibleRows, ...]]:
        """Return the visible rows of every scan, by table."""
        relation, context = read_query(tree, self.schemas, self.functions)
        nodes = [one.node for one in (relation, *context.subqueries.values())]
        scans = [scan for one in nodes for scan in _scans(push_filters(one, context), (), ())]
        found: dict[str, list[VisibleRows]] = {}
        for scan in scans:
            found.setdefault(scan.node.table, []).append(self._visible_rows(scan, scans, context))
        return {table: tuple(dict.fromkeys(rows)) for table, rows in found.items()}

    def _visible_rows(
        self, scan: _VisibleScan, scans: Iterable[_VisibleScan], context: Context
    ) -> VisibleRows:
        keys = {
            scan.node.columns[pair.mine]: self._keys(other, pair.theirs)
            for pair in scan.pairs
            for other in scans
            if pair.theirs in other.node.columns and self._may_compare(scan, other, pair, context)
        }
        sets = {column: (_key_set_name(select), select) for column, select in keys.items()}
        members = tuple(KeyMembership(column, name) for column, (name, _) in sets.items())
        return VisibleRows(members, self._conditions(scan), tuple(sets.values()))

    def _may_compare(
        self, scan: _VisibleScan, other: _VisibleScan, pair: _KeyPair, context: Context
    ) -> bool:
        """Return whether the other table is read earlier and its key has the same type."""
        order = list(self.schemas)
        mine, theirs = (context.types[column] for column in (pair.mine, pair.theirs))
        is_earlier = order.index(other.node.table) < order.index(scan.node.table)
        return is_earlier and mine is not None and mine == theirs

    def _keys(self, scan: _VisibleScan, column: int) -> str:
        conditions = self._conditions(scan)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT {quote(scan.node.columns[column])} FROM {quote(scan.node.table)}{where}"

    def _conditions(self, scan: _VisibleScan) -> tuple[str, ...]:
        """Return the filters of a scan that may be evaluated on any row (rule 3)."""
        kinds = of_columns(self.schemas[scan.node.table])
        texts = (
            one.over(lambda column: quote(scan.node.columns[column]))
            for one in scan.filters
            if one.columns and not one.subqueries and not one.costly & EXPENSIVE.keys()
        )
        return tuple(
            f"({text})" for text in texts if cannot_raise(dialect.parse_expression(text), kinds)
        )


def _key_set_name(select: str) -> str:
    """Return a name made from the SELECT, so that several queries share equal key sets."""
    return f"keys_{hashlib.sha256(select.encode()).hexdigest()[:12]}"


def _scans(
    node: Node, filters: tuple[Expr, ...], pairs: tuple[_KeyPair, ...]
) -> Iterable[_VisibleScan]:
    """Yield the scans below a node.

    `filters` are directly above the node. A row of the node that has no partner for one of `pairs`
    changes nothing above the node.
    """
    match node:
        case TableScan():
            own = tuple(pair for pair in pairs if pair.mine in node.columns)
            yield _VisibleScan(node, filters, own)
        case Constant():
            return
        case Filter():
            yield from _scans(node.child, (node.predicate, *filters), pairs)
        case Extend() | Unnest():
            yield from _scans(node.child, (), pairs)
        case Windows():  # a window function reads all rows of its partition
            yield from _scans(node.child, (), _of_columns(pairs, node.partitions))
        case Aggregate():  # an aggregate reads all rows of its group
            yield from _scans(node.child, (), _of_columns(pairs, node.keys))
        case Join():
            left, right = _pairs_below(node, pairs)
            yield from _scans(node.left, (), left)
            yield from _scans(node.right, (), right)
        case Top():  # LIMIT and OFFSET count rows, so each of them matters
            is_cut = node.limit is not None or node.offset
            yield from _scans(node.child, (), () if is_cut else pairs)
        case Union():
            for child in node.children:
                yield from _scans(child, (), ())
        case SetOperation():
            yield from _scans(node.left, (), ())
            yield from _scans(node.right, (), ())


def _of_columns(pairs: tuple[_KeyPair, ...], columns: Iterable[int]) -> tuple[_KeyPair, ...]:
    allowed = frozenset(columns)
    return tuple(pair for pair in pairs if pair.mine in allowed)


def _pairs_below(
    join: Join, pairs: tuple[_KeyPair, ...]
) -> tuple[tuple[_KeyPair, ...], tuple[_KeyPair, ...]]:
    """Return the pairs for which rows of the left and of the right side must have a partner.

    These are the keys of the join itself, for a side that needs a partner, and the pairs asked of
    the join's rows, for a side that the join does not null-extend.
    """
    left = columns_of(join.left)
    equal = [pair for pair in map(_equal_columns, join.conditions) if pair is not None]
    to_right = [p if p.mine in left else _KeyPair(p.theirs, p.mine) for p in equal]
    across = [p for p in to_right if p.mine in left and p.theirs not in left]
    own = {"left": across, "right": [_KeyPair(p.theirs, p.mine) for p in across]}

    def asked(side: Side) -> tuple[_KeyPair, ...]:
        above = () if join.null_extends(side) else pairs
        return (*above, *(own[side] if join.needs_partner(side) else ()))

    return asked("left"), asked("right")


def _equal_columns(condition: Expr) -> _KeyPair | None:
    """Return the two columns of an equality between columns."""
    if condition.sides is None:
        return None
    one, two = (column_of(side.text) for side in condition.sides)
    return None if one is None or two is None else _KeyPair(one, two)


def _extract_computed_columns(
    tree: exp.Query, schemas: Schemas, visible_rows: Mapping[str, tuple[VisibleRows, ...]]
) -> tuple[exp.Query, tuple[ComputedColumn, ...]]:
    """Return the tree with a column in place of each call that can be computed early, and these
    columns."""
    if not any(call.name.lower() in EXPENSIVE for call in tree.find_all(exp.Anonymous)):
        return tree, ()
    changed, computed = tree.copy(), list[ComputedColumn]()
    if any(not _is_count_star(star) for star in changed.find_all(exp.Star)):
        return tree, ()  # a star would also list the new columns
    for call in list(changed.find_all(exp.Anonymous)):
        found = _computed_column(call, schemas)
        if found is not None:
            table, column = found
            function = call.name.lower()
            computed += [
                ComputedColumn(table, function, column, one) for one in visible_rows[table]
            ]
            node = call.expressions[0].copy()
            node.set("this", exp.to_identifier(computed[-1].name, quoted=True))
            call.replace(node)
    return changed, tuple(dict.fromkeys(computed))


def _is_count_star(star: exp.Star) -> bool:
    call = star.parent
    return isinstance(call, exp.Anonymous) and call.name.lower() == "count"


def _computed_column(call: exp.Anonymous, schemas: Schemas) -> tuple[str, str] | None:
    """Return the table and the column that the call reads, if they are certain."""
    if call.name.lower() not in EXPENSIVE or len(call.expressions) != 1:
        return None
    (column,), select = call.expressions, call.parent_select
    if not isinstance(column, exp.Column) or not isinstance(select, exp.Select):
        return None
    if call.find_ancestor(exp.Lambda) or set(_given(column)) - {"this", "table"}:
        return None
    if any(folded(item.alias) == folded(column.name) for item in _aliases(select)):
        return None
    source = _source_of(column, select)
    known = {folded(name): name for name in schemas}
    if source is None or folded(source.name) not in known:
        return None
    table = known[folded(source.name)]
    columns = {folded(name): name for name in schemas[table]}
    named = columns.get(folded(column.name))
    return (table, named) if named is not None else None


def _source_of(column: exp.Column, select: exp.Select) -> exp.Table | None:
    """Return the table in FROM that a column belongs to, if it is a plain table there whose rows no
    join of this SELECT extends with nulls."""
    joins = select.args.get("joins") or ()
    first = [select.args["from_"].this] if select.args.get("from_") else []
    every = [*first, *(join.this for join in joins)]
    sources = every
    if column.table:
        sources = [one for one in every if folded(one.alias_or_name) == folded(column.table)]
    plain = [
        one for one in sources if isinstance(one, exp.Table) and not set(_given(one)) - _PLAIN_TABLE
    ]
    if len(sources) != 1 or len(plain) != 1:
        return None
    place = next(at for at, one in enumerate(every) if one is plain[0])
    if any(not _keeps_rows(join, at, place) for at, join in enumerate(joins, start=len(first))):
        return None
    alias = plain[0].args.get("alias")
    return None if alias is not None and alias.args.get("columns") else plain[0]


def _keeps_rows(join: exp.Join, right: int, place: int) -> bool:
    """Return whether a join, whose right side is the source at `right`, surely extends no row of
    the source at `place` with nulls. Sources behind a join are not a part of it."""
    if place > right:
        return True
    side, kind, method = join.side.upper(), join.kind.upper(), join.method.upper()
    if kind not in _KINDS or method not in _METHODS:
        return False
    return not side or (side == "LEFT" and place < right) or (side == "RIGHT" and place == right)


_PLAIN_TABLE = frozenset({"this", "alias"})
_KINDS = ("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI")
_METHODS = ("", "NATURAL")  # a POSITIONAL join extends the shorter side


def _aliases(select: exp.Select) -> list[exp.Alias]:
    return [item for item in select.expressions if isinstance(item, exp.Alias)]


def _given(node: exp.Expr) -> list[str]:
    return [key for key, value in node.args.items() if value]
