"""Type inference: the type of an expression, None where it is not certain (see `types.py`)."""

from collections.abc import Callable, Mapping

from sqlglot import exp

from caudal.sql.planner import dialect, types
from caudal.sql.planner.types import Type

_CONDITIONS = (
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is,
    exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In, exp.Like, exp.ILike, exp.Exists,
    exp.Boolean,
)  # fmt: skip
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.IntDiv, exp.Mod)
_SAME = frozenset({"abs", "coalesce", "greatest", "least", "ifnull", "nullif"})
_RETURNS = {
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
            "list_position",
            "array_length",
            "date_diff",
            "datediff",
            "date_part",
            "ascii",
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
            "concat",
            "replace",
            "substring",
            "substr",
            "left",
            "right",
            "reverse",
            "repeat",
            "lpad",
            "rpad",
            "regexp_replace",
            "regexp_extract",
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
    if isinstance(node, (exp.Paren, exp.Neg)):
        return infer(node.this)
    if isinstance(node, _CONDITIONS):
        return "BOOLEAN"
    if isinstance(node, _ARITHMETIC):
        return _arithmetic(infer(node.left), infer(node.right))
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
        return f"DECIMAL({max(len(whole.lstrip('0')) + len(fraction), 1)},{len(fraction)})"
    if not digits.isdigit():
        return None
    return "INTEGER" if int(digits) < 2**31 else "BIGINT" if int(digits) < 2**63 else "HUGEINT"


def _arithmetic(left: Type, right: Type) -> Type:
    if not (types.is_numeric(left) and types.is_numeric(right)):
        return None
    shared = types.common((left, right))
    if types.is_decimal(shared):
        return types.ANY_DECIMAL
    # DuckDB may give a literal the width of the other operand.
    return types.ANY_INTEGER if types.is_small(shared) and shared != "BIGINT" else shared


def _case(node: exp.Case, infer: Callable[[exp.Expr], Type]) -> Type:
    branches = [branch.args["true"] for branch in node.args["ifs"]]
    if node.args.get("default") is not None:
        branches.append(node.args["default"])
    kinds = [infer(branch) for branch in branches if not isinstance(branch, exp.Null)]
    return types.common(kinds) if kinds else None


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
    if name in _SAME:
        arguments = [
            infer(argument) for argument in node.expressions if not isinstance(argument, exp.Null)
        ]
        return types.common(arguments[:1] if name == "nullif" else arguments)
    if name in ("round", "floor", "ceil", "ceiling", "trunc") and node.expressions:
        kind = infer(node.expressions[0])
        return types.ANY_DECIMAL if types.is_decimal(kind) else kind
    return _RETURNS.get(name)
