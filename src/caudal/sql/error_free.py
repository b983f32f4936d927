"""Expressions that never raise an error, so that they may be evaluated early.

A condition that is moved below a join, into a scan or before another condition is evaluated on rows
on which the query as written never evaluates it. So only the expressions listed here may move.
Others (casts, integer arithmetic, functions that are not listed, subqueries) stay where they are.

Rules
1. DuckDB must have bound the statement already: only errors that depend on values are considered.
2. An expression is safe if it is listed, its parts are safe, and their types are known.
3. A comparison is safe if DuckDB needs no cast that can fail: between equal types, between integers
   (UHUGEINT excluded), of numbers with floats, of decimals whose common type has room.
4. Integers overflow, so `+`, `-`, `*`, `abs` and unary minus of integers can raise, except for the
   sum or difference of two literals of at most nine digits. Floats give inf or nan. `//` and `%`
   raise for a divisor of zero, so the divisor must be a positive literal.
"""

import datetime
import re
from collections.abc import Callable, Mapping
from itertools import combinations

from sqlglot import exp

from caudal.sql.quoting import folded

ColumnType = Callable[[exp.Column], str | None]
"""Returns DuckDB's name of a column's type; None if it is not known."""

_NULL = "NULL"
_INTEGERS = (
    "UTINYINT", "TINYINT", "USMALLINT", "SMALLINT", "UINTEGER", "INTEGER", "UBIGINT", "BIGINT",
    "HUGEINT",
)  # fmt: skip
_DIGITS = dict(zip(_INTEGERS, (3, 3, 5, 5, 10, 10, 20, 19, 39), strict=True))
_FLOATS = ("FLOAT", "DOUBLE")
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
_PRINTABLE = frozenset((*_INTEGERS, *_FLOATS, "BOOLEAN", "DATE", "TIMESTAMP", "VARCHAR"))
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_EXPONENT = re.compile(r"\d+(\.\d*)?[eE][+-]?\d+", re.ASCII)
_WHOLE_DECIMAL_DIGITS = 38

_CAST_TYPES = {
    exp.DType.TINYINT: "TINYINT", exp.DType.SMALLINT: "SMALLINT", exp.DType.INT: "INTEGER",
    exp.DType.BIGINT: "BIGINT", exp.DType.INT128: "HUGEINT", exp.DType.DOUBLE: "DOUBLE",
    exp.DType.FLOAT: "FLOAT", exp.DType.BOOLEAN: "BOOLEAN", exp.DType.TEXT: "VARCHAR",
    exp.DType.VARCHAR: "VARCHAR", exp.DType.DATE: "DATE", exp.DType.TIMESTAMP: "TIMESTAMP",
}  # fmt: skip

_COMPARISONS = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ,
)  # fmt: skip
_FLOAT_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)

# name: the types of its arguments -> its own type
_FUNCTIONS: dict[str, tuple[tuple[tuple[str, ...], ...], str]] = {
    **dict.fromkeys(
        ("lower", "upper", "trim", "ltrim", "rtrim", "reverse", "strip_accents"),
        ((("VARCHAR",),), "VARCHAR"),
    ),
    **dict.fromkeys(("strlen", "char_length"), ((("VARCHAR",),), "BIGINT")),
    **dict.fromkeys(
        ("contains", "starts_with", "ends_with", "prefix", "suffix"),
        ((("VARCHAR",), ("VARCHAR",)), "BOOLEAN"),
    ),
    **dict.fromkeys(
        ("year", "month", "day", "quarter", "week", "dayofweek", "dayofyear", "isodow"),
        ((_TIMES,), "BIGINT"),
    ),
    **dict.fromkeys(
        ("abs", "floor", "ceil", "ceiling", "sqrt", "cbrt", "exp", "ln", "log10", "log2"),
        ((("DOUBLE",),), "DOUBLE"),
    ),
    **dict.fromkeys(("isnan", "is_nan", "isinf", "is_inf", "isfinite"), ((_FLOATS,), "BOOLEAN")),
}
_LENGTHS = frozenset({"len", "length", "array_length"})
_OF_LISTS = _LENGTHS | {"list_contains", "list_has", "array_contains", "array_has"}
_SHARES = frozenset({"sentiment"})  # between -1 and 1 for every model
_SHARING = frozenset({"coalesce", "ifnull", "nullif", "greatest", "least"})


def cannot_raise(
    node: exp.Expr, column_type: ColumnType, functions: Mapping[str, str] | None = None
) -> bool:
    """Return whether the condition is true, false or null for all values of its columns.

    `functions` are further functions that never raise, by lower-case name, with their types.

    >>> from sqlglot import parse_one
    >>> kinds = of_columns({"kind": "VARCHAR", "n": "INTEGER"})
    >>> cannot_raise(parse_one("kind = '1' AND n > 5"), kinds)
    True
    >>> cannot_raise(parse_one("CAST(kind AS INTEGER) > 5"), kinds)
    False
    """
    return safe_type(node, column_type, functions) in ("BOOLEAN", _NULL)


def safe_type(
    node: exp.Expr, column_type: ColumnType, functions: Mapping[str, str] | None = None
) -> str | None:
    """Return the type of an expression; None if it can raise or if its type is not known."""
    return _SafeTypes(column_type, functions or {}).type_of(node)


def of_columns(kinds: Mapping[str, str]) -> ColumnType:
    """Return a lookup of types by the names of columns, case-insensitive.

    It ignores the table before the dot, so all columns must be of one table.
    """
    known = {folded(name): kind for name, kind in kinds.items()}
    return lambda column: known.get(folded(column.name))


def comparable(one: str | None, two: str | None) -> bool:
    """Return whether all values of these types can be compared without a cast that can fail."""
    if one is None or two is None:
        return False
    if one == two or _NULL in (one, two):
        return True
    if one in _INTEGERS and two in _INTEGERS:
        return True
    if one in _FLOATS or two in _FLOATS:
        return _is_number(one) and _is_number(two)
    return _decimals_have_room(one, two)


def _is_number(kind: str) -> bool:
    return kind in _INTEGERS or kind in _FLOATS or _DECIMAL.fullmatch(kind) is not None


def _decimals_have_room(one: str, two: str) -> bool:
    widths = [_width(kind) for kind in (one, two)]
    if None in widths:
        return False
    whole = max(width[0] for width in widths if width is not None)
    fraction = max(width[1] for width in widths if width is not None)
    return whole + fraction <= _WHOLE_DECIMAL_DIGITS


def _width(kind: str) -> tuple[int, int] | None:
    """Return the numbers of digits before and after the decimal point."""
    if kind in _DIGITS:
        return _DIGITS[kind], 0
    found = _DECIMAL.fullmatch(kind)
    if found is None:
        return None
    return int(found.group(1)) - int(found.group(2)), int(found.group(2))


class _SafeTypes:
    """Finds the types of expressions that cannot raise; None for all others."""

    def __init__(self, column_type: ColumnType, functions: Mapping[str, str]) -> None:
        self._column_type = column_type
        self._functions = functions

    def type_of(self, node: exp.Expr) -> str | None:
        if isinstance(node, (exp.And, exp.Or)):
            return self._all_conditions(node)
        if isinstance(node, exp.Paren):
            return self.type_of(node.this)
        if isinstance(node, exp.Column):
            return self._column_type(node)
        if isinstance(node, (exp.Literal, exp.Neg, exp.Null, exp.Boolean)):
            return self._constant(node)
        if isinstance(node, exp.Not):
            return self._condition(node.this)
        return self._compared(node) or self._computed(node)

    def _all_conditions(self, node: exp.Expr) -> str | None:
        """Check the operands of AND and OR without recursion, because there may be thousands."""
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if isinstance(one, (exp.And, exp.Or)):
                waiting += [one.left, one.right]
            elif self._condition(one) is None:
                return None
        return "BOOLEAN"

    def _condition(self, node: exp.Expr) -> str | None:
        return "BOOLEAN" if self.type_of(node) in ("BOOLEAN", _NULL) else None

    def _constant(self, node: exp.Expr) -> str | None:
        if isinstance(node, exp.Neg):
            kind = self.type_of(node.this)
            negatable = isinstance(node.this, exp.Literal) or kind in _FLOATS
            return kind if negatable and kind != "VARCHAR" else None
        if isinstance(node, exp.Literal):
            return _literal(node)
        return _NULL if isinstance(node, exp.Null) else "BOOLEAN"

    def _compared(self, node: exp.Expr) -> str | None:
        if isinstance(node, _COMPARISONS):
            return self._among(node.left, node.right)
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            return self._among(node.this, node.args["low"], node.args["high"])
        if isinstance(node, exp.In) and not _given(node) - {"this", "expressions"}:
            return self._among(node.this, *node.expressions)
        if isinstance(node, exp.Is):
            return self._is(node)
        if isinstance(node, (exp.Like, exp.ILike)) and not _given(node) - _PATTERN:
            return self._texts(node.this, node.expression)
        if isinstance(node, exp.RegexpLike) and not _given(node) - _PATTERN:
            constant = isinstance(
                node.expression, exp.Literal
            )  # DuckDB compiled it when it bound the query
            return self._texts(node.this, node.expression) if constant else None
        return None

    def _among(self, *nodes: exp.Expr) -> str | None:
        """Return the type of a comparison between all of these expressions."""
        kinds = [self.type_of(node) for node in nodes]
        times = [time for time in ("DATE", "TIMESTAMP") if time in kinds]
        if len(times) == 1:
            kinds = [_beside(*one, times[0]) for one in zip(nodes, kinds, strict=True)]
        pairs = combinations(dict.fromkeys(kinds), 2)
        known = all(kind is not None for kind in kinds)
        return "BOOLEAN" if known and all(comparable(*pair) for pair in pairs) else None

    def _is(self, node: exp.Is) -> str | None:
        kind = self.type_of(node.this)
        if kind is None:
            return None
        if isinstance(node.expression, exp.Null):
            return "BOOLEAN"
        truth = isinstance(node.expression, exp.Boolean) and kind == "BOOLEAN"
        return "BOOLEAN" if truth else None

    def _texts(self, *nodes: exp.Expr) -> str | None:
        kinds = {self.type_of(node) for node in nodes}
        return "BOOLEAN" if kinds <= {"VARCHAR", _NULL} else None

    def _computed(self, node: exp.Expr) -> str | None:
        if isinstance(node, exp.Cast):
            return self._cast(node)
        if isinstance(node, exp.Case):
            return self._case(node)
        if isinstance(node, exp.DPipe):
            return "VARCHAR" if self._texts(node.left, node.right) else None
        if isinstance(node, (*_FLOAT_ARITHMETIC, exp.IntDiv)):
            return self._arithmetic(node)
        if isinstance(node, exp.Extract):
            parts = node.name.upper() in ("YEAR", "MONTH", "DAY")
            return "BIGINT" if parts and self.type_of(node.expression) in _TIMES else None
        return self._call(node) if isinstance(node, exp.Func) else None

    def _cast(self, node: exp.Cast) -> str | None:
        to = _target(node.to)
        inner = self.type_of(node.this)
        if to is None or inner is None:
            return None
        if isinstance(node, exp.TryCast) or inner in (to, _NULL):
            return to
        if isinstance(node.this, exp.Literal) and node.this.is_string:
            return to if to in ("DATE", "TIMESTAMP") and _is_time(node.this.name, to) else None
        if self._is_share(node.this) and (width := _width(to)) and _DECIMAL.fullmatch(to):
            return to if width[0] >= 1 else None
        return to if _widens(inner, to) else None

    def _is_share(self, node: exp.Expr) -> bool:
        """Return whether the value is always between -1 and 1."""
        name, _ = _called(node) if isinstance(node, exp.Func) else ("", None)
        return name in _SHARES and name in self._functions

    def _case(self, node: exp.Case) -> str | None:
        if node.this is not None:
            return None
        conditions = [branch.this for branch in node.args["ifs"]]
        results = [branch.args["true"] for branch in node.args["ifs"]]
        if node.args.get("default") is not None:
            results.append(node.args["default"])
        if any(self._condition(condition) is None for condition in conditions):
            return None
        return self._shared(results)

    def _shared(self, nodes: list[exp.Expr]) -> str | None:
        """Return the one type of all these expressions; a null has any type."""
        kinds = {self.type_of(node) for node in nodes} - {_NULL}
        return kinds.pop() if len(kinds) == 1 else None

    def _arithmetic(self, node: exp.Binary) -> str | None:
        left, right = self.type_of(node.left), self.type_of(node.right)
        if left is None or right is None:
            return None
        if isinstance(node, (exp.Add, exp.Sub)) and _is_short(node.left) and _is_short(node.right):
            return "INTEGER"
        if isinstance(node, _FLOAT_ARITHMETIC) and "DOUBLE" in (left, right):
            return "DOUBLE" if _is_number(left) and _is_number(right) else None
        if isinstance(node, exp.Div) and _is_number(left) and _is_number(right):
            return "DOUBLE" if "FLOAT" not in (left, right) else None
        return self._divided(node, left, right)

    def _divided(self, node: exp.Binary, left: str, right: str) -> str | None:
        divides = isinstance(node, (exp.IntDiv, exp.Mod)) and isinstance(node.right, exp.Literal)
        if not divides or node.right.name.strip("0") == "" or right not in ("INTEGER", "BIGINT"):
            return None
        return left if left == "BIGINT" or left == right == "INTEGER" else None

    def _call(self, node: exp.Func) -> str | None:
        name, arguments = _called(node)
        if arguments is None:
            return None
        if name in self._functions:
            safe = all(self.type_of(argument) is not None for argument in arguments)
            return self._functions[name] if safe else None
        if name in _SHARING:
            return self._shared(arguments)
        if name == "regexp_matches" and len(arguments) == 2:
            return self._texts(*arguments) if isinstance(arguments[1], exp.Literal) else None
        if name in _OF_LISTS and arguments:
            return self._of_list(name, arguments)
        wanted, kind = _FUNCTIONS.get(name, ((), ""))
        if not wanted or len(wanted) != len(arguments):
            return None
        fits = zip(arguments, wanted, strict=True)
        return kind if all(self.type_of(one) in (*types, _NULL) for one, types in fits) else None

    def _of_list(self, name: str, arguments: list[exp.Expr]) -> str | None:
        """Return the type of a function of a list: its length, or whether it holds a value."""
        kinds = [self.type_of(argument) for argument in arguments]
        if name in _LENGTHS:
            known = len(kinds) == 1 and (kinds[0] == "VARCHAR" or _element(kinds[0]) is not None)
            return "BIGINT" if known else None
        holds = len(kinds) == 2 and kinds[1] is not None and kinds[1] == _element(kinds[0])
        return "BOOLEAN" if holds else None


def _element(kind: str | None) -> str | None:
    """Return the type of a list's elements."""
    return kind[:-2] if kind is not None and kind.endswith("[]") else None


_PATTERN = {"this", "expression", "negate"}


def _beside(node: exp.Expr, kind: str | None, time: str) -> str | None:
    """Return the type of a node that is compared with times: a text may be a time too."""
    is_text = isinstance(node, exp.Literal) and node.is_string
    return time if is_text and _is_time(node.name, time) else kind


def _given(node: exp.Expr) -> set[str]:
    return {key for key, value in node.args.items() if value}


def _called(node: exp.Func) -> tuple[str, list[exp.Expr] | None]:
    """Return the name of a function and its arguments; None if it has other clauses."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower(), list(node.expressions)
    if _given(node) - {"this", "expression", "expressions", "ignore_nulls"}:
        return "", None
    ones = [node.args[key] for key in ("this", "expression") if node.args.get(key) is not None]
    return node.sql_name().lower(), [*ones, *node.expressions]


def _literal(node: exp.Literal) -> str | None:
    if node.is_string:
        return "VARCHAR"
    digits = node.name
    if digits.isdigit():
        return "INTEGER" if int(digits) < 2**31 else "BIGINT" if int(digits) < 2**63 else None
    whole, point, fraction = digits.partition(".")
    if point and (whole + fraction).isdigit() and len(whole + fraction) <= _WHOLE_DECIMAL_DIGITS:
        return f"DECIMAL({max(len(whole.lstrip('0')) + len(fraction), 1)},{len(fraction)})"
    return "DOUBLE" if _EXPONENT.fullmatch(digits) else None


def _is_short(node: exp.Expr) -> bool:
    """Return whether the node is an integer literal of at most nine digits."""
    return (
        isinstance(node, exp.Literal)
        and not node.is_string
        and node.name.isdigit()
        and len(node.name) <= 9
    )


def _target(kind: exp.DataType) -> str | None:
    """Return the type to which a cast converts; None if it is not known here."""
    if kind.args.get("nested"):
        return None
    if kind.this == exp.DType.DECIMAL and len(kind.expressions) == 2:
        digits, scale = (one.name for one in kind.expressions)
        return f"DECIMAL({digits},{scale})" if (digits + scale).isdigit() else None
    return _CAST_TYPES.get(kind.this) if not kind.expressions else None


def _widens(kind: str, to: str) -> bool:
    """Return whether a cast succeeds for every value."""
    if to == "VARCHAR":
        return kind in _PRINTABLE or _DECIMAL.fullmatch(kind) is not None
    if to == "DOUBLE":
        return _is_number(kind)
    if to in ("INTEGER", "BIGINT", "HUGEINT"):
        narrow = kind in _INTEGERS and _DIGITS[kind] < _DIGITS[to]
        return (narrow and kind != "UBIGINT") or kind == "BOOLEAN"
    return to == "DATE" and kind == "TIMESTAMP"


def _is_time(text: str, kind: str) -> bool:
    form = r"\d{4}-\d{2}-\d{2}" + (r"([ T]\d{2}:\d{2}:\d{2})?" if kind == "TIMESTAMP" else "")
    if not re.fullmatch(form, text, re.ASCII):
        return False
    try:
        datetime.datetime.fromisoformat(text)
    except ValueError:
        return False
    return text[:4] != "0000"
