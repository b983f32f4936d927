"""Partial aggregates: what to compute over some of the rows, and how to merge it.

Exactness
1. Counts, sums of integers and decimals, minima and maxima merge exactly.
2. A sum of floats depends on the order of its terms. In parts it is computed exactly, as whole
   numbers (`float_sums.py`). Over whole groups it is computed in the order of the values
   (`sum(x ORDER BY x)`); so are correlations, regressions and such (`corr(y, x ORDER BY y, x)`).
   So the result depends on neither batches nor partitions nor joins.
3. Deviations merge by count, sum and variance of the parts, with distances to the common mean. No
   large squares are subtracted, so no digits cancel. The last bits depend on the batches, and on
   the partitions if parts are made there, after a join.
4. A merged aggregate has DuckDB's type: counts are cast back to BIGINT, sums keep their type.
"""

from dataclasses import dataclass, field

from caudal.sql.planner import float_sums, types
from caudal.sql.planner.algebra import Context, Expr, FunctionCall, mark
from caudal.sql.planner.types import Type

_SUMS = frozenset({"sum", "avg", "mean", "fsum", "kahan_sum", "sumkahan", "favg"})
_INEXACT = {  # over whole numbers too
    "stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop", "sem", "skewness",
    "kurtosis", "kurtosis_pop", "product", "entropy", "corr", "covar_pop", "covar_samp",
    "regr_avgx", "regr_avgy", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy",
    "regr_syy",
}  # fmt: skip
_GEOMETRIC_MEANS = {"geomean", "geometric_mean"}  # macros of DuckDB, which take no order
_DEVIATIONS = {
    "stddev": (1, "sqrt({})"), "stddev_samp": (1, "sqrt({})"), "stddev_pop": (0, "sqrt({})"),
    "variance": (1, "{}"), "var_samp": (1, "{}"), "var_pop": (0, "{}"),
}  # fmt: skip
_MOST_SCALES = 2  # float sums in parts at once; each one multiplies the partial groups


@dataclass
class AggregateMerge:
    """The parts of aggregates, and how they are merged.

    The parts have further group keys: `keys`, at most one, for DISTINCT, and `scales` for sums of
    floats. `key_exprs` computes both. `merged` are aggregates over parts, `finals` expressions over
    `merged`.
    """

    parts: dict[int, Expr] = field(default_factory=dict)
    merged: dict[int, Expr] = field(default_factory=dict)
    finals: dict[int, Expr] = field(default_factory=dict)
    keys: tuple[int, ...] = ()
    key_exprs: dict[int, Expr] = field(default_factory=dict)
    values: dict[int, Expr] = field(default_factory=dict)  # the floats to sum, as columns
    scales: dict[str, tuple[int, int]] = field(
        default_factory=dict
    )  # text of a float -> columns of its value and scale
    must_seal: bool = False

    def part_keys(self) -> tuple[int, ...]:
        """Return the further group keys of the parts."""
        return (*self.keys, *(scale for _, scale in self.scales.values()))


@dataclass
class SecondMerge:
    """The merge of totals with DISTINCT: totals of each partition, then their merge."""

    parts_text: dict[int, Expr]
    merge: AggregateMerge


def complete(call: FunctionCall) -> Expr:
    """Return the aggregate over all rows of a group at once."""
    arguments, order = [a.text for a in call.arguments], call.order
    if call.name in _GEOMETRIC_MEANS:
        log = f"ln({arguments[0]})"
        return Expr(f"exp(avg({log} ORDER BY {log}))", call.type, call.arguments[0].costly)
    if not order and _depends_on_order(call):  # DuckDB refuses to order by a constant
        order = tuple((one, "") for one in call.arguments if one.columns)
    return _written(call, arguments, order)


def _depends_on_order(call: FunctionCall) -> bool:
    """Return whether the last bits of a number depend on the order of the rows."""
    if call.name in _SUMS:
        return not all(types.is_exact(argument.type) for argument in call.arguments)
    return call.name in _INEXACT


def _as_rows_come(call: FunctionCall) -> Expr:
    return _written(call, [a.text for a in call.arguments], call.order)


def _written(call: FunctionCall, arguments: list[str], order: tuple[tuple[Expr, str], ...]) -> Expr:
    inside = ", ".join(arguments) if arguments else "*"
    if call.distinct:
        inside = "DISTINCT " + inside
    if order:
        inside += " ORDER BY " + ", ".join(expr.text + way for expr, way in order)
    text = f"{call.name}({inside})"
    if call.condition is not None:
        text += f" FILTER (WHERE {call.condition.text})"
    costly = frozenset[str]().union(*(e.costly for e in call.expressions()))
    return Expr(text, call.type, costly)


def merge(
    calls: dict[int, FunctionCall], kinds: dict[int, Type], *, ordered: bool
) -> AggregateMerge | None:
    """Return the parts of all calls; None if one of them cannot be merged from parts.

    `ordered` says that the rows always come in the same order.
    """
    made = AggregateMerge()
    distinct = {call.arguments[0].text: call for call in calls.values() if _is_split_distinct(call)}
    if len(distinct) > 1:
        return None
    new = _Numbers(kinds)
    for call in distinct.values():
        key = new.column(call.arguments[0].type)
        made.keys = (key,)
        made.key_exprs[key] = call.arguments[0]
    for column, call in calls.items():
        if call.order:
            return None
        if _is_split_distinct(call):
            _merge_distinct(column, call, made)
        elif call.distinct or not _merge_one(column, call, made, new, ordered=ordered):
            return None
    if made.finals:
        made.finals = {c: made.finals.get(c, Expr(mark(c), call.type)) for c, call in calls.items()}
    return made


def _is_split_distinct(call: FunctionCall) -> bool:
    return (
        call.distinct
        and call.name in ("count", "sum", "min", "max")
        and call.condition is None
        and len(call.arguments) == 1
        and (call.name != "sum" or types.is_exact(call.arguments[0].type))
    )


@dataclass
class _Numbers:
    """Gives new column numbers, for the columns of parts."""

    kinds: dict[int, Type]

    def column(self, kind: Type) -> int:
        number = len(self.kinds) + 1
        self.kinds[number] = kind
        return number


def _merge_distinct(column: int, call: FunctionCall, made: AggregateMerge) -> None:
    (key,) = made.keys
    made.merged[column] = Expr(f"{call.name}(DISTINCT {mark(key)})", call.type)


def _merge_one(
    column: int, call: FunctionCall, made: AggregateMerge, new: _Numbers, *, ordered: bool
) -> bool:
    """Add the parts of one aggregate; return False if it has none."""
    if len(call.arguments) > 1:
        return False
    write = _as_rows_come if ordered else complete
    if call.name == "count":
        part = new.column("BIGINT")
        made.parts[part] = write(call)
        made.merged[column] = Expr(f"CAST(coalesce(sum({mark(part)}), 0) AS BIGINT)", "BIGINT")
        return True
    if call.name in ("count_if", "countif"):
        part = new.column("HUGEINT")  # null if all conditions were null, as a sum is
        made.parts[part] = write(call)
        made.merged[column] = Expr(f"sum({mark(part)})", "HUGEINT")
        return True
    if call.name in ("min", "max", "bool_and", "bool_or"):
        part = new.column(call.type)
        made.parts[part] = write(call)
        made.merged[column] = Expr(f"{call.name}({mark(part)})", call.type)
        return True
    if call.name == "sum" and types.is_float(call.arguments[0].type):
        return _merge_float_sum(column, call, made, new)
    if call.name == "sum" and call.type is not None:
        part = new.column(call.type)
        made.parts[part] = write(call)
        made.merged[column] = Expr(f"sum({mark(part)})", call.type)
        return True
    if call.name in _DEVIATIONS and types.is_numeric(call.arguments[0].type):
        _merge_deviation(column, call, made, new, ordered=ordered)
        return True
    return False


def _merge_float_sum(column: int, call: FunctionCall, made: AggregateMerge, new: _Numbers) -> bool:
    text = call.arguments[0].text
    if text not in made.scales:
        if len(made.scales) == _MOST_SCALES:
            return False
        value, scale = new.column("DOUBLE"), new.column("INTEGER")
        made.values[value] = call.arguments[0]
        made.scales[text] = (value, scale)
        made.key_exprs[scale] = Expr(float_sums.scale(mark(value)), "INTEGER", safe=True)
    value, scale = made.scales[text]
    parts = {}
    for name, (inside, kind) in float_sums.parts(mark(value), mark(scale)).items():
        function = "count" if name == "count" else "sum"
        argument = Expr(inside, kind, safe=True)
        part = parts[name] = new.column(kind)
        made.parts[part] = _as_rows_come(
            FunctionCall(function, (argument,), condition=call.condition)
        )
    merged = float_sums.merged({name: mark(part) for name, part in parts.items()}, mark(scale))
    numbers = {name: new.column(kind) for name, (_, kind) in merged.items()}
    for name, (expr, kind) in merged.items():
        made.merged[numbers[name]] = Expr(expr, kind)
    made.finals[column] = Expr(float_sums.final({k: mark(c) for k, c in numbers.items()}), "DOUBLE")
    made.must_seal = True
    return True


def _merge_deviation(
    column: int, call: FunctionCall, made: AggregateMerge, new: _Numbers, *, ordered: bool
) -> None:
    write = _as_rows_come if ordered else complete
    argument = Expr(f"CAST({call.arguments[0].text} AS DOUBLE)", "DOUBLE", call.arguments[0].costly)
    names = ("count", "sum", "var_pop", "min", "max")
    parts = {name: new.column("BIGINT" if name == "count" else "DOUBLE") for name in names}
    for name, part in parts.items():
        kind = new.kinds[part]
        made.parts[part] = write(FunctionCall(name, (argument,), False, (), call.condition, kind))
    n, s, v, low, high = (mark(part) for part in parts.values())
    merged = {
        "count": f"sum({n})",
        "sum": f"sum({s} ORDER BY {s})",
        "every": (
            f"list({{'n': {n}, 's': {s}, 'v': {v}}} ORDER BY {n}, {s}, {v}) FILTER (WHERE {n} > 0)"
        ),
        "low": f"min({low})",
        "high": f"max({high})",
    }
    kinds: dict[str, Type] = {**dict.fromkeys(merged, "DOUBLE"), "count": "HUGEINT", "every": None}
    numbers = {name: new.column(kinds[name]) for name in merged}
    made.merged.update({numbers[name]: Expr(text, kinds[name]) for name, text in merged.items()})
    made.finals[column] = _deviation(call.name, {k: mark(c) for k, c in numbers.items()})
    made.must_seal = True


def _deviation(name: str, over: dict[str, str]) -> Expr:
    """Return the deviation as an expression over the merged parts.

    As in DuckDB, the deviation of one value is 0, even of NaN, and that of a sample of one is null.
    It is 0 for values that are all equal too, although the means of the parts may differ in the
    last bit.
    """
    less, shape = _DEVIATIONS[name]
    count, zero = over["count"], "CAST(0 AS DOUBLE)"
    squares = (
        f"list_sum(list_transform({over['every']}, lambda p: "
        f"p.n * p.v + p.n * power(p.s / p.n - {over['sum']} / {count}, 2)))"
    )
    final = shape.format(f"{squares} / ({count} - {less})")
    alone = "" if less else f"WHEN {count} = 1 THEN {zero} "
    equal = f"WHEN {over['low']} = {over['high']} AND NOT isnan({over['low']}) THEN {zero}"
    few = f"WHEN {count} <= 1 THEN NULL "
    return Expr(f"CASE {alone}{few}{equal} WHEN {count} > 1 THEN {final} END", "DOUBLE")


def second(first: AggregateMerge, context: Context) -> SecondMerge:
    """Return the merge of totals with DISTINCT.

    A value is in one partition only, so the totals of the partitions can be added.
    """
    halves: dict[int, Expr] = {}
    merged: dict[int, Expr] = {}
    for column, expr in first.merged.items():
        half = context.column(expr.type)
        halves[half] = expr
        merged[column] = _merged_again(expr, half)
    return SecondMerge(
        halves, AggregateMerge(halves, merged, first.finals, must_seal=first.must_seal)
    )


def _merged_again(expr: Expr, half: int) -> Expr:
    name = expr.text.split("(", 1)[0].lower()
    this = mark(half)
    if name in ("min", "max", "bool_and", "bool_or"):
        return Expr(f"{name}({this})", expr.type)
    if name == "list":
        return Expr(f"list_sort(flatten(list({this})))", expr.type)
    if name == "cast" or (name == "count" and "DISTINCT" in expr.text):
        kind = expr.type or "BIGINT"
        return Expr(f"CAST(coalesce(sum({this}), 0) AS {kind})", kind)
    order = "" if types.is_exact(expr.type) else f" ORDER BY {this}"
    return Expr(f"sum({this}{order})", expr.type)
