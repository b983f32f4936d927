"""Values of every type go through Arrow, as stages send them, and come back the same."""

from collections.abc import Iterator

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from tests.harness.duckdb_types import TYPES, texts_of

from caudal.duck.arrow_casts import TYPE, carried, readable
from caudal.duck.sandbox import Sandbox
from caudal.errors import FormatError, QueryError
from caudal.formats import mapped

WRAPPED = {
    "alone": "v",
    "listed": "[v, NULL]",
    "in a struct": "{'x y': v, 'z': [v]}",
    "in a tuple": "row(v, 1)",
    "mapped": "map([1, 2], [v, NULL])",
    "in an array": "array_value(v, v)",
    "deep": "[{'a': map([1], [[{'b': v}]])}]",
}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"arrow_lossless_conversion": True, "threads": 1}) as connection:
        yield connection


def sent(rows: pa.Table) -> pa.Table:
    """Rows as they arrive: filtered, cut into two slices, written, read, put together."""
    rows = rows.filter(pa.array([True] * rows.num_rows))
    parts = [rows.take(pa.array(np.arange(place, rows.num_rows, 2))) for place in (0, 1)]
    body = bytearray()
    spans = [mapped.append_stream(body, part) for part in (*parts, rows.slice(0, 0))]
    return pa.concat_tables(
        mapped.read_rows(bytes(body[span.offset : span.offset + span.length])) for span in spans
    )


@pytest.mark.parametrize("wrapped", WRAPPED.values(), ids=WRAPPED)
@pytest.mark.parametrize("kind", TYPES)
def test_values_come_back(kind: str, wrapped: str, connection: duckdb.DuckDBPyConnection) -> None:
    if "UNION" in kind and not wrapped.startswith(("v", "[v", "{")):
        pytest.skip("refused")
    connection.execute("CREATE OR REPLACE TABLE texts (k INTEGER, t VARCHAR)")
    connection.executemany("INSERT INTO texts VALUES (?, ?)", list(enumerate(texts_of(kind))))
    connection.execute(
        f"CREATE OR REPLACE TABLE t AS SELECT k, {wrapped} AS w "
        f"FROM (SELECT k, CAST(t AS {kind}) AS v FROM texts)"
    )
    rows = sent(carried(connection.sql("FROM t")))
    with readable(connection, "back", rows):
        assert connection.sql("FROM back").types == connection.sql("FROM t").types
        told = "k, CAST(w AS VARCHAR), w IS NULL"
        back = connection.sql(f"SELECT {told} FROM back ORDER BY k").fetchall()
        assert back == connection.sql(f"SELECT {told} FROM t ORDER BY k").fetchall()


def test_the_parts_of_an_interval_come_back(connection: duckdb.DuckDBPyConnection) -> None:
    """24 hours and a day are equal and written differently; both survive, and so do extremes."""
    made = (
        "SELECT to_months(m) + to_days(d) + to_microseconds(u) AS i, m, d, u FROM"
        " (SELECT unnest([0, 1, -1, 14, -25]) AS m), (SELECT unnest([0, 1, -400]) AS d),"
        " (SELECT unnest([0, 1, -1, 86400000000, 9223372036854775807, -9223372036854775807]) AS u)"
    )
    with readable(connection, "back", sent(carried(connection.sql(made)))):
        asked = (
            "SELECT count(*) FROM back WHERE CAST(i AS VARCHAR) <> "
            "CAST(to_months(m) + to_days(d) + to_microseconds(u) AS VARCHAR) "
            "OR extract(year FROM i) * 12 + extract(month FROM i) <> m OR extract(day FROM i) <> d"
        )
        assert connection.sql(asked).fetchall() == [(0,)]


def test_a_union_that_holds_a_null_is_not_null(connection: duckdb.DuckDBPyConnection) -> None:
    kind = "UNION(a VARCHAR, \"b c\" ENUM('x', 'y'))"
    values = ["union_value(a := NULL)", "union_value(\"b c\" := 'y')", "NULL", "'z'"]
    listed = ", ".join(f"CAST({value} AS {kind})" for value in values)
    connection.execute(f"CREATE OR REPLACE TABLE t AS SELECT unnest([{listed}]) AS u")
    asked = "SELECT union_tag(u)::VARCHAR, u IS NULL, u::VARCHAR FROM"
    with readable(connection, "back", sent(carried(connection.sql("FROM t")))):
        found = connection.sql(f"{asked} back ORDER BY ALL").fetchall()
        assert found == connection.sql(f"{asked} t ORDER BY ALL").fetchall()
        assert len({row[:2] for row in found}) == 3


def test_a_sandbox_passes_types_on() -> None:
    with Sandbox() as sandbox:
        made = sandbox.select("SELECT unnest(['low', 'high'])::ENUM('high', 'low') AS e", {})
        assert made.schema.field("e").metadata[TYPE] == b"ENUM('high', 'low')"
        found = sandbox.select("SELECT max(e) AS m, typeof(max(e)) AS t FROM x", {"x": made})
        assert found.to_pydict() == {"m": ["low"], "t": ["ENUM('high', 'low')"]}


def test_a_type_that_is_not_carried_is_refused_with_a_remedy() -> None:
    with Sandbox() as sandbox, pytest.raises(QueryError, match=r"CAST\(\"u\" AS VARCHAR\)"):
        sandbox.select("SELECT map([1], [union_value(a := 1)]) AS u", {})


def test_a_field_that_names_no_type_is_refused() -> None:
    field = pa.field("e", pa.string(), metadata={TYPE: b"VARCHAR) FROM secret --"})
    rows = pa.table([pa.array(["x"])], schema=pa.schema([field]))
    with Sandbox() as sandbox, pytest.raises(FormatError, match="names a type that is none"):
        sandbox.select("FROM t", {"t": rows})
