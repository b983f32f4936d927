"""Type inference: the type of an expression, None where it is not certain (see `types.py`).

`validate_stages.py` asks DuckDB whether the types of a plan's stages are right. A false one here
costs a query its split, but no right answer.
"""

from collections.abc import Callable, Iterable, Mapping

from sqlglot import exp

from caudal.sql.planner import dialect, types
from caudal.sql.planner.types import Type

_CONDITIONS = (
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is,
    exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In, exp.Like, exp.ILike, exp.Exists,
    exp.Boolean,
)  # fmt: skip
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.IntDiv, exp.Mod)
_SAME = frozenset({"coalesce", "greatest", "least", "ifnull", "nullif"})
_ROUNDED = frozenset({"round", "floor", "ceil", "ceiling", "trunc"})
_WHOLE_PARTS = frozenset(
    {"year", "month", "day", "hour", "minute", "second", "quarter", "week", "dow", "isodow", "doy"}
)
_WRITTEN = ("VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP")
_LITERALS = (("INTEGER", 31), ("BIGINT", 63), ("HUGEINT", 127))
_MOST_DIGITS = 38  # of a DECIMAL
RETURNS = {  # functions that return this type for all arguments
    **dict.fromkeys(
        [
            "length",
            "len",
            "strlen",
            "char_length",
            "year",
            "month",
            "day",
            "hour",
            "minute",
            "second",
            "quarter",
            "week",
            "dayofweek",
            "dayofyear",
            "isodow",
            "century",
            "decade",
            "strpos",
            "instr",
            "position",
            "array_length",
            "date_diff",
            "datediff",
        ],
        "BIGINT",
    ),
    **dict.fromkeys(
        [
            "lower",
            "upper",
            "trim",
            "ltrim",
            "rtrim",
            "replace",
            "substring",
            "substr",
            "left",
            "right",
            "reverse",
            "lpad",
            "rpad",
            "regexp_replace",
            "md5",
            "sha256",
            "strftime",
            "split_part",
            "chr",
            "array_to_string",
            "monthname",
            "dayname",
            "printf",
            "format",
            "concat_ws",
        ],
        "VARCHAR",
    ),
    **dict.fromkeys(
        [
            "contains",
            "starts_with",
            "ends_with",
            "prefix",
            "suffix",
            "list_contains",
            "list_has",
            "array_contains",
            "regexp_matches",
            "regexp_full_match",
            "isnan",
            "isinf",
            "isfinite",
            "list_has_any",
            "list_has_all",
        ],
        "BOOLEAN",
    ),
    **dict.fromkeys(
        ["sqrt", "ln", "log", "log10", "log2", "exp", "pow", "power", "sin", "cos", "tan", "cbrt"],
        "DOUBLE",
    ),
    **dict.fromkeys(["string_split", "str_split", "split", "regexp_split_to_array"], "VARCHAR[]"),
    **dict.fromkeys(["make_date", "last_day"], "DATE"),
    **dict.fromkeys(["list_position", "ascii"], "INTEGER"),
}

ColumnType = Callable[[exp.Column], Type]


def type_of(node: exp.Expr, column: ColumnType, functions: Mapping[str, str]) -> Type:
    """Return the type of a node; None if it is not certain."""

    def infer(inner: exp.Expr) -> Type:
        return type_of(inner, column, functions)

    if isinstance(node, exp.Column):
        return column(node)
    if isinstance(node, exp.Literal):
        return _literal(node)
    if isinstance(node, exp.Cast):
        return types.normal(dialect.text(node.to))
    if isinstance(node, exp.Paren):
        return infer(node.this)
    if isinstance(node, exp.Neg):
        return _negated(node, infer(node.this))
    if isinstance(node, _CONDITIONS):
        return "BOOLEAN"
    if isinstance(node, _ARITHMETIC):
        return _arithmetic(node, infer(node.left), infer(node.right))
    if isinstance(node, exp.Div):
        both = {infer(node.left), infer(node.right)}
        return "DOUBLE" if all(types.is_numeric(k) for k in both) and "FLOAT" not in both else None
    if isinstance(node, exp.DPipe):
        both = {infer(node.left), infer(node.right)}
        return "VARCHAR" if both == {"VARCHAR"} else None
    if isinstance(node, exp.Case):
        return _case(node, infer)
    if isinstance(node, exp.Bracket):
        return _element(node, infer(node.this))
    if isinstance(node, exp.Extract):
        return "BIGINT" if node.name.upper() in ("YEAR", "MONTH", "DAY") else None
    if isinstance(node, (exp.Substring, exp.Trim)):
        return "VARCHAR"
    if isinstance(node, exp.Anonymous):
        return _call(node, infer, functions)
    return None


def _literal(node: exp.Literal) -> Type:
    if node.is_string:
        return "VARCHAR"
    digits = node.name
    if "e" in digits.lower():
        return "DOUBLE"
    if "." in digits:
        whole, _, fraction = digits.partition(".")
        width = len(whole) + len(fraction)
        return f"DECIMAL({width},{len(fraction)})" if 0 < width <= _MOST_DIGITS else None
    if not digits.isdigit():
        return None
    number = int(digits)
    return next((kind for kind, bits in _LITERALS if number < 2**bits), None)


def _negated(node: exp.Neg, kind: Type) -> Type:
    # DuckDB folds the sign into a literal: the least INTEGER is the negation of a BIGINT.
    if _is_whole_literal(node):
        return types.ANY_INTEGER if types.is_small(kind) else None
    return kind if types.is_numeric(kind) or kind == "INTERVAL" else None


def _is_whole_literal(node: exp.Expr) -> bool:
    while isinstance(node, (exp.Neg, exp.Paren)):
        node = node.this
    return isinstance(node, exp.Literal) and node.is_int


def _arithmetic(node: exp.Expr, left: Type, right: Type) -> Type:
    if not (types.is_numeric(left) and types.is_numeric(right)):
        return None
    shared = types.common((left, right))
    if types.is_decimal(shared):
        return None if isinstance(node, (exp.IntDiv, exp.Mod)) else types.ANY_DECIMAL
    if shared == "BIGNUM":
        return None
    # DuckDB may give a literal the width of the other operand.
    return types.ANY_INTEGER if types.is_small(shared) and shared != "BIGINT" else shared


def _case(node: exp.Case, infer: Callable[[exp.Expr], Type]) -> Type:
    branches = [branch.args["true"] for branch in node.args["ifs"]]
    if node.args.get("default") is not None:
        branches.append(node.args["default"])
    return _shared(branches, infer)


def _shared(nodes: Iterable[exp.Expr], infer: Callable[[exp.Expr], Type]) -> Type:
    """Return the type of a value that is one of these."""
    given = [node for node in nodes if not isinstance(node, exp.Null)]
    kind = types.common(infer(node) for node in given)
    # DuckDB may give a literal the width of the others.
    is_narrow = types.is_small(kind) and any(map(_is_whole_literal, given))
    return types.ANY_INTEGER if is_narrow else kind


def _element(node: exp.Bracket, kind: Type) -> Type:
    indices = node.expressions
    if kind is None or not kind.endswith("[]") or len(indices) != 1:
        return None
    return kind if isinstance(indices[0], exp.Slice) else kind[:-2]


def _call(
    node: exp.Anonymous, infer: Callable[[exp.Expr], Type], functions: Mapping[str, str]
) -> Type:
    name = node.name.lower()
    if name in functions:
        return functions[name]
    arguments = node.expressions
    kinds = [infer(argument) for argument in arguments]
    first = kinds[0] if kinds else None
    if name in _SAME:
        return _shared(arguments[:1] if name == "nullif" else arguments, infer)
    if name in _ROUNDED:
        return _rounded(name, first)
    if name in ("date_part", "datepart"):
        part = arguments[0].name.lower() if isinstance(arguments[0], exp.Literal) else ""
        return "BIGINT" if part in _WHOLE_PARTS else None
    if name == "abs":
        return first if types.is_numeric(first) and first != "BIGNUM" else None
    if name == "concat":
        return "VARCHAR" if all(types.is_numeric(k) or k in _WRITTEN for k in kinds) else None
    if name in ("repeat", "regexp_extract"):
        is_text = first == "VARCHAR" and all(k == "VARCHAR" or types.is_small(k) for k in kinds)
        return "VARCHAR" if is_text else None
    return RETURNS.get(name)


def _rounded(name: str, kind: Type) -> Type:
    if types.is_decimal(kind):
        return types.ANY_DECIMAL
    if types.is_float(kind):
        return kind
    if not types.is_small(kind):
        return None
    if name in ("floor", "ceil", "ceiling"):
        return "DOUBLE"
    return types.ANY_INTEGER if kind in types.UNSIGNED else kind
