"""DuckDB's types, as far as the planner needs them: is a sum exact, how is a key hashed.

Rules
1. A type is DuckDB's name for it, or None if it is not known. None is always safe: values of an
   unknown type are neither summed in parts nor hashed.
2. Two keys may be hashed by a common type only if values that DuckDB calls equal become the same
   value of that type. Different values may become the same value. DuckDB compares an integer with
   a FLOAT as FLOATs, so that is how they are hashed: as DOUBLEs, equal ones would differ.
"""

from collections.abc import Iterable

Type = str | None

_ALIASES = {
    "INT1": "TINYINT", "INT2": "SMALLINT", "SHORT": "SMALLINT", "INT": "INTEGER",
    "INT4": "INTEGER", "SIGNED": "INTEGER", "INT8": "BIGINT", "LONG": "BIGINT",
    "FLOAT8": "DOUBLE", "DOUBLE PRECISION": "DOUBLE", "REAL": "FLOAT", "FLOAT4": "FLOAT",
    "TEXT": "VARCHAR", "STRING": "VARCHAR", "CHAR": "VARCHAR", "BPCHAR": "VARCHAR",
    "BOOL": "BOOLEAN", "LOGICAL": "BOOLEAN", "DATETIME": "TIMESTAMP",
    "NUMERIC": "DECIMAL(18,3)", "DECIMAL": "DECIMAL(18,3)", "DEC": "DECIMAL(18,3)",
    "INT128": "HUGEINT",
}  # fmt: skip

_SMALL = ("TINYINT", "UTINYINT", "SMALLINT", "USMALLINT", "INTEGER", "UINTEGER", "BIGINT")
UNSIGNED = ("UTINYINT", "USMALLINT", "UINTEGER")
_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
ANY_INTEGER = "INTEGER(?)"  # an integer of at most 64 bits, of unknown width
_LARGE = ("UBIGINT", "HUGEINT", "UHUGEINT", "BIGNUM")
_UNSUMMED = "UHUGEINT"  # the integers whose sum is a DOUBLE in DuckDB
_FLOATS = ("FLOAT", "DOUBLE")
_ROOMY_DIGITS = 26  # of a DECIMAL: its sums have 38 digits, enough for 10^12 rows
ANY_DECIMAL = "DECIMAL(?)"  # a decimal of unknown width
_NATIVE_KEYS = ("VARCHAR", "DATE", "TIMESTAMP")
_PRINTED_KEYS = ("UUID", "TIME", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "BLOB", "BIT")


def normal(name: str) -> str:
    """Return the one spelling of a type.

    >>> normal("int"), normal("decimal(38, 12)"), normal("text[]")
    ('INTEGER', 'DECIMAL(38,12)', 'VARCHAR[]')
    """
    spelled = name.strip()
    if spelled.endswith("[]"):
        return normal(spelled[:-2]) + "[]"
    upper = " ".join(spelled.upper().split())
    if upper.startswith(("DECIMAL(", "NUMERIC(", "DEC(")):
        inside = upper[upper.index("(") + 1 : -1].replace(" ", "")
        return f"DECIMAL({inside if ',' in inside else inside + ',0'})"
    if upper.startswith("VARCHAR("):
        return "VARCHAR"
    return _ALIASES.get(upper, upper if "(" not in upper else spelled)


def is_integer(kind: Type) -> bool:
    return is_small(kind) or kind in _LARGE


def is_small(kind: Type) -> bool:
    """Return whether the type is an integer that fits into a signed one of 64 bits."""
    return kind in _SMALL or kind == ANY_INTEGER


def is_certain(kind: Type) -> bool:
    """Return whether the type is known with its width."""
    return kind is not None and "?" not in kind


def agrees(inferred: Type, found: str) -> bool:
    """Return whether a type that was inferred holds for what DuckDB says the type is.

    >>> agrees("INTEGER(?)", "SMALLINT"), agrees("INTEGER", "SMALLINT"), agrees(None, "SMALLINT")
    (True, False, True)
    """
    if inferred is None:
        return True
    if inferred.endswith("[]") and found.endswith("[]"):
        return agrees(inferred[:-2], found[:-2])
    if inferred == ANY_INTEGER:
        return is_small(found)
    return is_decimal(found) if inferred == ANY_DECIMAL else normal(found) == inferred


def is_decimal(kind: Type) -> bool:
    return kind is not None and kind.startswith("DECIMAL(")


def is_float(kind: Type) -> bool:
    return kind in _FLOATS


def is_numeric(kind: Type) -> bool:
    return is_integer(kind) or is_decimal(kind) or is_float(kind)


def is_exact(kind: Type) -> bool:
    """Return whether values of the type can be summed in any order with the same result."""
    return (is_integer(kind) and kind != _UNSUMMED) or is_decimal(kind) or kind == "BOOLEAN"


def summed(kind: Type) -> Type:
    """Return the type of `sum` over values of the type; None if parts of it do not merge."""
    if is_decimal(kind) and kind != ANY_DECIMAL:
        assert kind is not None
        return f"DECIMAL(38,{kind[:-1].split(',')[1]})"
    if is_decimal(kind):
        return ANY_DECIMAL
    if kind == "BIGNUM":
        return kind
    if is_exact(kind):
        return "HUGEINT"
    return "DOUBLE" if is_float(kind) else None


def sums_have_room(kind: Type) -> bool:
    """Return whether no sum over as many rows as a machine can hold overflows."""
    if kind is not None and is_decimal(kind) and kind != ANY_DECIMAL:
        return int(kind[len("DECIMAL(") : -1].split(",")[0]) <= _ROOMY_DIGITS
    return is_small(kind) or is_float(kind) or kind in ("UBIGINT", "BOOLEAN")


def common(kinds: Iterable[Type]) -> Type:
    """Return the type of a CASE, a UNION or an arithmetic operation over these types."""
    distinct = set(kinds)
    if len(distinct) == 1:
        return distinct.pop()
    if not distinct or None in distinct or not all(is_numeric(kind) for kind in distinct):
        return None
    if any(is_float(kind) for kind in distinct):
        return "DOUBLE" if "DOUBLE" in distinct else None
    if any(is_decimal(kind) for kind in distinct):
        return None if distinct & {"UHUGEINT", "BIGNUM"} else ANY_DECIMAL
    if distinct <= set(_SIGNED):
        return max(distinct, key=lambda kind: _SIGNED.index(kind or ""))
    return ANY_INTEGER if all(is_small(kind) for kind in distinct) else None


def compare_safely(one: Type, two: Type) -> bool:
    """Return whether no comparison of values of these types raises, as far as they are known.

    For example, a text that is not a number raises when it is compared with a number.
    """
    if one is None or two is None or one == two:
        return True
    return is_numeric(one) and is_numeric(two)


def has_one_form(kind: Type) -> bool:
    """Return whether values of the type that DuckDB calls equal are the same value.

    >>> has_one_form("VARCHAR[]"), has_one_form("DOUBLE"), has_one_form("INTERVAL")
    (True, False, False)
    """
    if kind is None:
        return False
    return is_small(kind) or kind in ("BOOLEAN", *_NATIVE_KEYS) or _prints_canonically(kind)


def hashed(kinds: Iterable[Type]) -> Type:
    """Return the type to which keys of these types are cast for hashing; None: do not hash."""
    distinct = set(kinds)
    if None in distinct or ANY_DECIMAL in distinct:
        return None
    if all(is_small(kind) for kind in distinct) or distinct == {"BOOLEAN"}:
        return "BIGINT"
    if all(is_integer(kind) for kind in distinct):
        # Set operations compare UHUGEINTs with other integers as DOUBLEs.
        return "VARCHAR" if "UHUGEINT" not in distinct or len(distinct) == 1 else None
    if all(kind in _FLOATS or is_small(kind) for kind in distinct):
        as_floats = "FLOAT" in distinct and "DOUBLE" not in distinct
        return "FLOAT" if as_floats else "DOUBLE"
    if len(distinct) > 1:
        return None
    only = distinct.pop()
    assert only is not None
    if only in _NATIVE_KEYS:
        return only
    return "VARCHAR" if _prints_canonically(only) else None


def _prints_canonically(kind: str) -> bool:
    """Return whether equal values have equal texts; not so for floats (-0.0), intervals, maps."""
    if kind.endswith("[]"):
        element = kind[:-2]
        return element in ("VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP") or (
            _prints_canonically(element)
        )
    named = kind in _PRINTED_KEYS or kind.startswith("ENUM(")
    return named or is_integer(kind) or is_decimal(kind)
