"""Every type that the planner infers is the one that DuckDB gives, or is not claimed."""

import itertools
from collections.abc import Iterable, Iterator
from contextlib import closing

import duckdb
import pytest
from sqlglot import exp
from tests.harness.oracle import ORACLE

from caudal.sql.planner import aggregate_calls, dialect, type_inference, types
from caudal.sql.planner.dialect import UnsupportedError

INTEGERS = (
    "TINYINT", "UTINYINT", "SMALLINT", "USMALLINT", "INTEGER", "UINTEGER", "BIGINT", "UBIGINT",
    "HUGEINT", "UHUGEINT", "BIGNUM",
)  # fmt: skip
NUMBERS = (*INTEGERS, "FLOAT", "DOUBLE", "DECIMAL(4,1)", "DECIMAL(18,3)", "DECIMAL(38,6)")
TYPES = (
    *NUMBERS, "BOOLEAN", "VARCHAR", "BLOB", "BIT", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_NS",
    "TIMESTAMP WITH TIME ZONE", "INTERVAL", "UUID", "JSON", "ENUM('a', 'b')", "VARCHAR[]",
    "INTEGER[]", "INTEGER[2]", "STRUCT(x INTEGER)", "MAP(VARCHAR, INTEGER)",
)  # fmt: skip
LITERALS = (
    "1", "-1", "300", "-2147483648", "2147483648", "9223372036854775808", "1" + "0" * 38,
    "1" + "0" * 40, "1.5", ".5", "0.0", "00.50", "1." + "1" * 40, "1e3", "'x'", "'5'", "NULL",
    "true",
)  # fmt: skip
COLUMNS = tuple(f"c{place}" for place in range(len(TYPES)))
OPERATORS = ("+", "-", "*", "/", "//", "%", "||", "=", "<")
SAME = ("coalesce", "greatest", "least", "ifnull", "nullif")
CASES = (
    "CASE WHEN true THEN {} ELSE {} END",
    "CASE WHEN true THEN {} WHEN false THEN {} END",
    "CASE WHEN true THEN {} ELSE -({}) END",
)


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config=ORACLE) as made:
        listed = ", ".join(f"{name} {kind}" for name, kind in zip(COLUMNS, TYPES, strict=True))
        made.execute(f"CREATE TABLE t ({listed})")
        yield made


def described(database: duckdb.DuckDBPyConnection, text: str) -> str | None:
    """DuckDB's type of an expression; None if it is not valid."""
    try:
        return str(database.sql(f"SELECT {text} FROM t").types[0])
    except duckdb.Error:
        return None


def inferred(text: str) -> types.Type:
    node = dialect.parse(f"SELECT {text} AS v FROM t").expressions[0].this
    kinds = dict(zip(COLUMNS, TYPES, strict=True))
    return type_inference.type_of(node, lambda column: kinds[column.name], {})


def called(text: str) -> types.Type:
    """The type inferred for a call of an aggregate."""
    node = dialect.parse(f"SELECT {text} AS v FROM t").expressions[0].this
    assert isinstance(node, exp.Anonymous)
    kinds = [inferred(dialect.text(argument)) for argument in node.expressions]
    return aggregate_calls.type_of_call(node.name.lower(), kinds)


def wrong(
    database: duckdb.DuckDBPyConnection, texts: Iterable[str], *, aggregate: bool = False
) -> dict[str, tuple[types.Type, str]]:
    """The expressions whose inferred type is false, with that type and DuckDB's."""
    found: dict[str, tuple[types.Type, str]] = {}
    for text in texts:
        try:
            claimed = called(text) if aggregate else inferred(text)
        except UnsupportedError:
            continue
        if claimed is None:
            continue
        written = dialect.text(dialect.parse(f"SELECT {text} AS v FROM t").expressions[0].this)
        given = described(database, written)  # a stage has the text that the tree prints
        if given is not None and not types.agrees(claimed, given):
            found[text] = (claimed, given)
    return found


def test_literals(database: duckdb.DuckDBPyConnection) -> None:
    assert wrong(database, LITERALS) == {}
    assert inferred("1") == "INTEGER"
    assert inferred("0.5") == "DECIMAL(2,1)"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("operator", OPERATORS)
def test_operators(operator: str, database: duckdb.DuckDBPyConnection) -> None:
    pairs = itertools.product((*COLUMNS, *LITERALS), repeat=2)
    assert wrong(database, (f"{one} {operator} {two}" for one, two in pairs)) == {}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("template", [*(f"{name}({{}}, {{}})" for name in SAME), *CASES])
def test_choices_between_values(template: str, database: duckdb.DuckDBPyConnection) -> None:
    pairs = itertools.product((*COLUMNS, *LITERALS), repeat=2)
    assert wrong(database, itertools.starmap(template.format, pairs)) == {}


def test_choices_between_three_values(database: duckdb.DuckDBPyConnection) -> None:
    numbers = [*COLUMNS[: len(NUMBERS)], "1", "300", "2147483648", "1.5"]
    triples = itertools.combinations(numbers, 3)
    assert wrong(database, (f"coalesce({a}, {b}, {c})" for a, b, c in triples)) == {}


def test_functions_of_one_value(database: duckdb.DuckDBPyConnection) -> None:
    names = {*type_inference.RETURNS, *SAME, "abs", "round", "floor", "ceil", "ceiling", "trunc"}
    calls = itertools.product(sorted(names), (*COLUMNS, *LITERALS))
    assert wrong(database, (f"{name}({one})" for name, one in calls)) == {}
    assert wrong(database, (f"-({one})" for one in (*COLUMNS, *LITERALS))) == {}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("second", ["1", "-1", "'x'", "c11", "[1, 2]", "['x', 'y']"])
def test_functions_of_two_and_three_values(
    second: str, database: duckdb.DuckDBPyConnection
) -> None:
    names = sorted({*type_inference.RETURNS, "round", "floor", "ceil", "trunc"})
    first = (*COLUMNS, "1", "'x'", "'epoch'", "'year'", "'julian'", "['year', 'month']")
    pairs = itertools.product(names, first)
    assert wrong(database, (f"{name}({one}, {second})" for name, one in pairs)) == {}
    triples = itertools.product(names, first, ("1", "'x'", "['x', 'y']"))
    assert wrong(database, (f"{n}({one}, {second}, {three})" for n, one, three in triples)) == {}


def test_parts_of_times(database: duckdb.DuckDBPyConnection) -> None:
    parts = (
        "year", "month", "day", "hour", "minute", "second", "quarter", "week", "dow", "isodow",
        "doy", "decade", "century", "millennium", "era", "isoyear", "yearweek", "milliseconds",
        "microseconds", "nanoseconds", "epoch", "julian", "timezone",
    )  # fmt: skip
    made = itertools.product(parts, COLUMNS)
    assert wrong(database, (f"date_part('{part}', {column})" for part, column in made)) == {}
    made = itertools.product(parts, COLUMNS)
    assert wrong(database, (f"extract({part} FROM {column})" for part, column in made)) == {}
    assert inferred(f"date_part('year', {COLUMNS[TYPES.index('DATE')]})") == "BIGINT"


def test_functions_that_are_named_have_one_type(database: duckdb.DuckDBPyConnection) -> None:
    """Overloads that the tests above do not call would be found here."""
    asked = "SELECT function_name, list(DISTINCT return_type) FROM duckdb_functions() GROUP BY ALL"
    known = dict(database.execute(asked).fetchall())
    others = {
        name: (known.get(name), kind)
        for name, kind in type_inference.RETURNS.items()
        if known.get(name) != [kind]
    }
    assert others.keys() == {"split_part", "array_to_string"}  # macros, which have no type there


AGGREGATES = (
    "count", "count_if", "countif", "approx_count_distinct", "sum", "min", "max", "first", "last",
    "any_value", "arbitrary", "mode", "arg_min", "arg_max", "min_by", "max_by", "quantile_disc",
    "quantile_cont", "median", "avg", "mean", "stddev", "stddev_samp", "stddev_pop", "variance",
    "var_samp", "var_pop", "corr", "covar_pop", "covar_samp", "skewness", "kurtosis", "entropy",
    "bool_and", "bool_or", "string_agg", "listagg", "group_concat", "list", "array_agg", "product",
    "bit_and", "fsum", "histogram", "approx_quantile", "regr_count",
)  # fmt: skip


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregates(name: str, database: duckdb.DuckDBPyConnection) -> None:
    values = (*COLUMNS, *LITERALS)
    more = ("1", "2", "0.5", "[0.25, 0.5]", "','", "c4", "c11", "c17")
    one = [f"{name}({value})" for value in values]
    two = [f"{name}({value}, {other})" for value in values for other in more]
    three = [f"{name}({value}, {other}, 2)" for value in values for other in ("c4", "c11")]
    assert wrong(database, (*one, *two, *three), aggregate=True) == {}


def test_sums_of_unsigned_hugeints_are_not_exact() -> None:
    assert not types.is_exact("UHUGEINT")
    assert types.summed("UHUGEINT") is None
    assert types.summed("BIGNUM") == "BIGNUM"


def test_unions(database: duckdb.DuckDBPyConnection) -> None:
    found = {}
    for (one, left), (two, right) in itertools.product(zip(COLUMNS, TYPES, strict=True), repeat=2):
        claimed = types.common((left, right))
        with closing(database.cursor()) as cursor:
            try:
                given = str(cursor.sql(f"SELECT {one} FROM t UNION SELECT {two} FROM t").types[0])
            except duckdb.Error:
                continue
        if not types.agrees(claimed, given):
            found[left, right] = (claimed, given)
    assert found == {}
