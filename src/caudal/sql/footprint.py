"""Say what a query can see of each table, so that reading computes and keeps nothing else.

Rules
1. Only what is positively known counts. The query is read into the planner's algebra, which takes
   nothing that it does not know. DuckDB must read the same tree from the text and from what was
   understood of it, and must scan each table as often as the tree names it. Otherwise every row of
   every table is seen and nothing is lifted: slower, never wrong.
2. The *sight* of a scan says which rows of its table can matter: those that pass the filters which
   stand, or may be moved, directly above the scan; and, where a join keeps only rows with a partner
   in a table that was read earlier, those whose key is among the keys of that table. A row that is
   out of sight of every scan of every query is not kept.
3. A condition is used only if it cannot raise an error: it is evaluated on rows that the query
   itself may never reach. A key is compared only with keys of the same type.
4. A call such as `sentiment(text)` on a column of a table is *lifted*: it becomes a column of that
   table, computed once for all queries where some scan of the query can see the row. Then the text
   itself need not be kept. DuckDB must give the rewritten query the same types (duck/bind.py).
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from caudal.sql.error_free import cannot_raise, of_columns
from caudal.sql.parsing import NOT_UNDERSTOOD, quote, read_sql
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

Schema = Mapping[str, str]  # column -> DuckDB type
Schemas = Mapping[str, Schema]  # by table, in the order of reading

EXPENSIVE = {"sentiment": "DOUBLE"}  # function -> type of its result


@dataclass(frozen=True)
class KeyMembership:
    """The condition that a column is in a key set."""

    column: str
    keys: str

    @property
    def sql(self) -> str:
        return f"{quote(self.column)} IN (SELECT * FROM {self.keys})"


@dataclass(frozen=True)
class Sight:
    """Which rows of a table a scan can see: those for which all of this holds."""

    members: tuple[KeyMembership, ...] = ()
    conditions: tuple[str, ...] = ()  # over the table's columns
    key_sets: tuple[tuple[str, str], ...] = ()  # (name, SELECT): the sets that the members read

    @property
    def condition(self) -> str | None:
        """The sight as SQL over the table's columns; None when it is everything."""
        parts = (*(one.sql for one in self.members), *self.conditions)
        return f"({' AND '.join(parts)})" if parts else None


EVERYTHING = Sight()


@dataclass(frozen=True)
class Lift:
    """An expensive function of one column, computed where a scan of the query can see the row."""

    table: str
    function: str
    column: str
    sight: Sight = EVERYTHING

    @property
    def name(self) -> str:
        return f"{self.function}({self.column})"

    @property
    def type(self) -> str:
        return EXPENSIVE[self.function]


@dataclass(frozen=True)
class Footprint:
    """A query over tables that carry its lifts as columns, and what it sees of each table.

    A table that `sights` does not name is seen whole.
    """

    sql: str
    lifts: tuple[Lift, ...] = ()
    sights: Mapping[str, tuple[Sight, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class DuckDBReading:
    """What DuckDB says of a query: how often it scans each table, and whether two texts are the
    same statement."""

    scans: Mapping[str, int]
    is_same: Callable[[str, str], bool]


def analyze(
    sql: str, schemas: Schemas, functions: Mapping[str, str], duckdb: DuckDBReading
) -> Footprint:
    """Return what the query sees. `functions` are those that Caudal adds, with their types."""
    try:
        tree = dialect.parse(sql)
        if not _is_accounted_for(tree, schemas, duckdb.scans):
            return Footprint(sql)
        require_understood(sql, tree, lambda text, read: duckdb.is_same(text, dialect.text(read)))
        sights = _Analyzer(schemas, functions).sights(tree)
        lifted, lifts = _take_lifts(tree, schemas, sights)
    except (UnsupportedError, *NOT_UNDERSTOOD, LookupError):
        return Footprint(sql)
    return Footprint(dialect.text(lifted) if lifts else sql, lifts, sights)


def output_names(sql: str) -> list[str]:
    """Return the names of a SELECT's columns as its author wrote them; none when unknown."""
    try:
        tree = read_sql(sql)
        return list(tree.named_selects) if isinstance(tree, exp.Query) else []
    except NOT_UNDERSTOOD:
        return []


def _is_accounted_for(tree: exp.Query, schemas: Schemas, scans: Mapping[str, int]) -> bool:
    """Whether DuckDB scans each table exactly as often as the tree names it.

    A common table that is called like a table would make the count of names meaningless.
    """
    known = {name.lower() for name in schemas}
    if any(common.alias.lower() in known for common in tree.find_all(exp.CTE)):
        return False
    named = Counter(
        table.name.lower()
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier) and table.name.lower() in known
    )
    return named == Counter({name.lower(): count for name, count in scans.items()})


@dataclass(frozen=True)
class _KeyPair:
    """A column of a scan whose value must be among the values of another scan's column."""

    mine: int
    theirs: int


@dataclass(frozen=True)
class _VisibleScan:
    """A scan of a table, the filters directly above it, and what joins ask of its columns."""

    node: TableScan
    filters: tuple[Expr, ...]
    pairs: tuple[_KeyPair, ...]


@dataclass
class _Analyzer:
    schemas: Schemas
    functions: Mapping[str, str]

    def sights(self, tree: exp.Query) -> dict[str, tuple[Sight, ...]]:
        """Return, for each table, the sight of every scan of it."""
        relation, context = read_query(tree, self.schemas, self.functions)
        nodes = [one.node for one in (relation, *context.subqueries.values())]
        scans = [scan for one in nodes for scan in _scans(push_filters(one, context), (), ())]
        found: dict[str, list[Sight]] = {}
        for scan in scans:
            found.setdefault(scan.node.table, []).append(self._sight(scan, scans, context))
        return {table: tuple(dict.fromkeys(sights)) for table, sights in found.items()}

    def _sight(self, scan: _VisibleScan, scans: Iterable[_VisibleScan], context: Context) -> Sight:
        keys = {
            scan.node.columns[pair.mine]: self._keys(other, pair.theirs)
            for pair in scan.pairs
            for other in scans
            if pair.theirs in other.node.columns and self._may_ask(scan, other, pair, context)
        }
        sets = {column: (_key_set_name(select), select) for column, select in keys.items()}
        members = tuple(KeyMembership(column, name) for column, (name, _) in sets.items())
        return Sight(members, self._conditions(scan), tuple(sets.values()))

    def _may_ask(
        self, scan: _VisibleScan, other: _VisibleScan, pair: _KeyPair, context: Context
    ) -> bool:
        """Whether the other table is read earlier, and its key has the same type."""
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
    """Name a key set after what it selects, so that the same set of several queries is one."""
    return f"keys_{hashlib.sha256(select.encode()).hexdigest()[:12]}"


def _scans(
    node: Node, filters: tuple[Expr, ...], pairs: tuple[_KeyPair, ...]
) -> Iterable[_VisibleScan]:
    """Yield the scans below a node.

    `filters` stand directly above the node. A row of the node without a partner for one of `pairs`
    does not matter to whoever reads the node.
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
        case Windows():  # a row sees the rows of its partition
            yield from _scans(node.child, (), _of_columns(pairs, node.partitions))
        case Aggregate():  # a row sees the rows of its group
            yield from _scans(node.child, (), _of_columns(pairs, node.keys))
        case Join():
            left, right = _pairs_below(node, pairs)
            yield from _scans(node.left, (), left)
            yield from _scans(node.right, (), right)
        case Top():  # where rows are counted, each of them matters
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
    """Return what the two sides of a join must match to matter.

    A side that the join does not preserve matters only where its rows have a partner. What is asked
    of the join's rows is asked of a side only if the join never null-extends that side.
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


def _take_lifts(
    tree: exp.Query, schemas: Schemas, sights: Mapping[str, tuple[Sight, ...]]
) -> tuple[exp.Query, tuple[Lift, ...]]:
    """Return the tree with each call that can be lifted as a column, and the lifts."""
    lifted, lifts = tree.copy(), list[Lift]()
    if any(not _is_count_star(star) for star in lifted.find_all(exp.Star)):
        return tree, ()  # a star would give the new columns too
    for call in list(lifted.find_all(exp.Anonymous)):
        found = _lifted_column(call, schemas)
        if found is not None:
            table, column = found
            lifts += [Lift(table, call.name.lower(), column, sight) for sight in sights[table]]
            node = call.expressions[0].copy()
            node.set("this", exp.to_identifier(lifts[-1].name, quoted=True))
            call.replace(node)
    return lifted, tuple(dict.fromkeys(lifts))


def _is_count_star(star: exp.Star) -> bool:
    call = star.parent
    return isinstance(call, exp.Anonymous) and call.name.lower() == "count"


def _lifted_column(call: exp.Anonymous, schemas: Schemas) -> tuple[str, str] | None:
    """Return the table and column whose function the call is, if that is certain."""
    if call.name.lower() not in EXPENSIVE or len(call.expressions) != 1:
        return None
    (column,), select = call.expressions, call.parent_select
    if not isinstance(column, exp.Column) or not isinstance(select, exp.Select):
        return None
    if call.find_ancestor(exp.Lambda) or set(_given(column)) - {"this", "table"}:
        return None
    if any(item.alias.lower() == column.name.lower() for item in _aliases(select)):
        return None
    source = _source_of(column, select)
    known = {name.lower(): name for name in schemas}
    if source is None or source.name.lower() not in known:
        return None
    table = known[source.name.lower()]
    columns = {name.lower(): name for name in schemas[table]}
    named = columns.get(column.name.lower())
    return (table, named) if named is not None else None


def _source_of(column: exp.Column, select: exp.Select) -> exp.Table | None:
    """Return the table in FROM that a column belongs to, if it stands there plainly."""
    sources = [select.args["from_"].this] if select.args.get("from_") else []
    sources += [join.this for join in select.args.get("joins") or ()]
    if column.table:
        sources = [one for one in sources if one.alias_or_name.lower() == column.table.lower()]
    plain = [
        one for one in sources if isinstance(one, exp.Table) and not set(_given(one)) - _PLAIN_TABLE
    ]
    if len(sources) != 1 or len(plain) != 1:
        return None
    alias = plain[0].args.get("alias")
    return None if alias is not None and alias.args.get("columns") else plain[0]


_PLAIN_TABLE = frozenset({"this", "alias"})


def _aliases(select: exp.Select) -> list[exp.Alias]:
    return [item for item in select.expressions if isinstance(item, exp.Alias)]


def _given(node: exp.Expr) -> list[str]:
    return [key for key, value in node.args.items() if value]
