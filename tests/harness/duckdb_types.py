"""Every type that DuckDB has, with values of it: its own list, and nested ones that matter here."""

import functools

import duckdb

_ORDERED = "ENUM('high', 'low', 'middling', 'it''s')"
_NESTED = {
    f"{_ORDERED}": ["low", "high", "it's", None, "middling"],
    f"{_ORDERED}[]": ["[low, high]", "[]", None, "[NULL, middling]"],
    f"STRUCT(e {_ORDERED}, i INTEGER)": ["{'e': low, 'i': 1}", "{'e': high, 'i': NULL}", None],
    f"MAP({_ORDERED}, BIT)": ["{high=101, low=1}", "{}", None],
    f"{_ORDERED}[2]": ["[low, high]", "[high, NULL]", None],
    f"STRUCT(e STRUCT(e {_ORDERED}[])[])[]": ["[{'e': [{'e': [low, high]}]}]", None, "[]"],
    "BIT": ["101", "0101", "1", "00000000", "111111111111", None],
    "BIT[]": ["[101, 0101]", "[1]", None],
    "TIME WITH TIME ZONE": ["10:00:00+00", "12:00:00+02", "23:59:59.999999-15:59", None],
    "STRUCT(t TIME WITH TIME ZONE)": ["{'t': '10:00:00+00'}", "{'t': '12:00:00+02'}", None],
    "UHUGEINT": ["0", "340282366920938463463374607431768211455", "5", None],
    "UHUGEINT[]": ["[0, 340282366920938463463374607431768211455]", "[]", None],
    "HUGEINT": [
        "-170141183460469231731687303715884105728", "170141183460469231731687303715884105727",
        "7", None,
    ],
    "BIGNUM": ["12345678901234567890123456789012345678901234567890", "-1", "0", None],
    "INTERVAL": ["1 month 3 days", "2562047788:00:54.775807", "-3 days 00:00:00.000001", None],
    "INTERVAL[]": ["[2562047788:00:54.775807, 1 month]", None],
    "JSON": ['{"a": [1, null]}', "7", None],
    "JSON[]": ['["{}", "7"]', None],
    "VARIANT": ["a", "b", None],
    "UUID[]": ["[6f6d2b5a-3c0f-4f9e-8d55-0a1b2c3d4e5f]", None],
    "TIMESTAMP_NS[]": ["['2020-01-01 00:00:00.123456789']", None],
    "DECIMAL(38,10)": ["-9999999999999999999999999999.9999999999", "0.0000000001", None],
    "DATE": ["infinity", "-infinity", "0044-03-15 (BC)", "2020-01-31", "99999-01-01", None],
    "TIMESTAMP": ["infinity", "-infinity", "2020-01-31 10:00:00.000001", None],
    "TIME": ["24:00:00", "00:00:00", "10:11:12.131415", None],
    "TIME_NS": ["24:00:00", "10:11:12.131415167", None],
    "UNION(a VARCHAR, b INTEGER)": ["a", "7", None],
    "TUPLE(INTEGER, VARCHAR)": ["(1, a)", "(2, NULL)", None],
}  # fmt: skip


@functools.cache
def _listed() -> dict[str, list[str | None]]:
    """The types of test_all_types(), with the texts of their values."""
    found: dict[str, list[str | None]] = {}
    with duckdb.connect() as connection:
        relation = connection.sql("FROM test_all_types()")
        for name, kind in zip(relation.columns, map(str, relation.types), strict=True):
            rows = connection.execute(f'SELECT "{name}"::VARCHAR FROM test_all_types()').fetchall()
            texts: list[str | None] = []
            for (text,) in rows:
                if text is None or _casts(connection, text, kind):
                    texts.append(text)
            found.setdefault(kind, texts)
    return found


def _casts(connection: duckdb.DuckDBPyConnection, text: str, kind: str) -> bool:
    asked = connection.execute(f"SELECT TRY_CAST(? AS {kind}) IS NOT NULL", [text])
    return "\0" not in text and bool(asked.fetchall()[0][0])


TYPES = sorted({*_listed(), *_NESTED})


def texts_of(kind: str) -> list[str | None]:
    """Values of the type as text that casts to it; null is one of them."""
    return [*_listed().get(kind, ()), *_NESTED.get(kind, ())]
