"""Sums of floats in parts, with a result that does not depend on how the rows are cut.

Theory of operation
1. A float is a whole number times a power of two. Floats of a similar magnitude (a *scale*: 32
   binary orders) are whole numbers below 2^86 times the same power. Whole numbers are added
   exactly, in any order, as HUGEINT.
2. So the parts are grouped by scale too. A merged group has one exact whole number per scale. These
   few are converted to floats and added, from the smallest scale to the largest.
3. Zeros are left out. NaN and the infinities are summed apart; their sum is the same in any order.
4. A float below 2^-960 is rounded to a multiple of 2^-1012.
"""

_ORDERS = 32  # binary orders of magnitude in a scale
_DIGITS = 52  # binary digits of a float after the first
_LEAST = -30  # the smallest scale: for the next one, the power of two is no float

Kinds = dict[str, tuple[str, str | None]]  # name -> expression and type


def scale(text: str) -> str:
    """Return the scale of a float as SQL; null for zero, NaN and the infinities."""
    least = f"CAST(floor(log2(abs({text})) / {_ORDERS}) AS INTEGER)"
    return f"CASE WHEN {_is_counted(text)} THEN greatest({least}, {_LEAST}) END"


def parts(text: str, of_scale: str) -> Kinds:
    """Return the expressions to sum over rows of one scale; `count` is counted."""
    power = f"power(CAST(2 AS DOUBLE), {_DIGITS} - {_ORDERS} * {of_scale})"
    whole = f"CASE WHEN {_is_counted(text)} THEN CAST(({text}) * {power} AS HUGEINT) END"
    odd = f"CASE WHEN NOT isfinite({text}) THEN CAST({text} AS DOUBLE) END"
    return {"whole": (whole, "HUGEINT"), "odd": (odd, "DOUBLE"), "count": (text, "BIGINT")}


def merged(of_parts: dict[str, str], of_scale: str) -> Kinds:
    """Return the aggregates over the parts of a group."""
    whole = of_parts["whole"]
    every = f"list({{'b': {of_scale}, 'm': {whole}}}) FILTER (WHERE {whole} IS NOT NULL)"
    return {
        "every": (every, None),
        "odd": (f"sum({of_parts['odd']})", "DOUBLE"),
        "count": (f"sum({of_parts['count']})", "HUGEINT"),
    }


def final(over: dict[str, str]) -> str:
    """Return the sum as an expression over the merged parts."""
    every = over["every"]
    scales = f"list_sort(list_distinct(list_transform({every}, lambda p: p.b)))"
    own = f"list_transform(list_filter({every}, lambda p: p.b = s), lambda p: p.m)"
    power = f"power(CAST(2 AS DOUBLE), {_ORDERS} * s - {_DIGITS})"
    sums = f"list_transform({scales}, lambda s: CAST(list_sum({own}) AS DOUBLE) * {power})"
    return (
        f"CASE WHEN coalesce({over['count']}, 0) = 0 THEN NULL "
        f"WHEN {over['odd']} IS NOT NULL THEN {over['odd']} "
        f"ELSE coalesce(list_sum({sums}), CAST(0 AS DOUBLE)) END"
    )


def _is_counted(text: str) -> str:
    return f"isfinite({text}) AND ({text}) <> 0"
