"""What the planner does not positively know is run as its author wrote it."""

from collections.abc import Iterator

import pytest

from caudal.duck.binder import DuckDBBinder
from caudal.errors import UsageError
from caudal.sql.planner import Plan, dialect, plan, rules
from caudal.sql.planner.algebra import Context, Expr, Extend, Filter, Node, columns_of
from caudal.sql.planner.known_syntax import find_unknown_syntax

SCHEMAS = {
    "t": {"a": "INTEGER", "b": "INTEGER", "s": "VARCHAR", "kind": "VARCHAR", "n": "BIGINT"},
    "u": {"k": "INTEGER", "w": "INTEGER", "name": "VARCHAR"},
    "fold1": {"a": "INTEGER"},
}


@pytest.fixture(scope="module")
def binder() -> Iterator[DuckDBBinder]:
    made = DuckDBBinder(SCHEMAS)
    yield made
    made.close()


def planned(sql: str, binder: DuckDBBinder) -> Plan:
    return plan({"q": sql}, SCHEMAS, binder=binder)


def scan_of(made: Plan, table: str) -> str:
    (found,) = [scan.sql for scan in made.scans if scan.table == table]
    return found


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT t.a, u.k FROM t JOIN u NEAREST 2 BY DISTANCE t.a - u.k",
        "SELECT * FROM t UNPIVOT (a FOR n IN (a, b)) WHERE a > 5",
        "SELECT * ILIKE 'k%' FROM t",
        "SELECT a FROM t TABLESAMPLE 10%",
        "SELECT a FROM t NATURAL JOIN u",
        "SELECT DISTINCT ON (a) a, b FROM t",
        "SELECT a FROM t UNION ALL BY NAME SELECT b FROM t",
        "SELECT a FROM t LIMIT 10%",
        "SELECT a FROM (t JOIN u ON a = k)",
    ],
)
def test_every_part_that_is_not_listed_is_unknown(sql: str) -> None:
    assert find_unknown_syntax(dialect.parse(sql)) is not None


def test_a_clause_that_nobody_thought_of_is_unknown() -> None:
    tree = dialect.parse("SELECT a FROM t JOIN u ON a = k")
    assert find_unknown_syntax(tree) is None
    tree.args["joins"][0].set("nearest", dialect.parse("SELECT 1"))
    assert find_unknown_syntax(tree) == "join with nearest is not split"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT (SELECT count(*) FROM query('FROM t')) AS n, count(*) FROM t WHERE a > 3",
        "SELECT count(*) FROM t WHERE a IN (SELECT a FROM query_table('t')) AND b > 3",
        "SELECT * FROM t UNPIVOT (a FOR n IN (a, b)) WHERE a > 5",
        "SELECT t.a FROM t JOIN u NEAREST 2 BY DISTANCE t.a - u.k WHERE t.a > 3",
        "SELECT q.a FROM t AS q(b, a), range(2) WHERE q.a > 3",
        "SELECT a, random() FROM t WHERE CAST(s AS INTEGER) > 3",
    ],
)
def test_nothing_is_pushed_where_anything_is_unknown(sql: str, binder: DuckDBBinder) -> None:
    made = planned(sql, binder)
    assert made.finish("q").strategy != "scaled"
    assert "WHERE" not in scan_of(made, "t")


def test_what_is_known_is_pushed(binder: DuckDBBinder) -> None:
    made = planned("SELECT a, random() FROM t WHERE kind = '1' AND s::INTEGER > 3", binder)
    assert scan_of(made, "t") == """SELECT "a", "s", "kind" FROM "t" WHERE ("kind" = '1')"""


def test_columns_stay_where_positions_mean_them(binder: DuckDBBinder) -> None:
    made = planned("SELECT #2, random() FROM t", binder)
    assert scan_of(made, "t") == 'SELECT "a", "b", "s", "kind", "n" FROM "t"'


@pytest.mark.parametrize("terms", [600, 5000])
def test_many_conditions_are_answered(terms: int, binder: DuckDBBinder) -> None:
    text = " OR ".join(f"a = {number}" for number in range(terms))
    assert planned(f"SELECT a FROM t WHERE {text}", binder).finish("q").inputs.keys() == {"t"}


@pytest.mark.parametrize("error", [ValueError, KeyError, AssertionError, RecursionError])
def test_a_query_is_gathered_if_a_rule_raises(
    error: type[Exception], binder: DuckDBBinder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_error(node: Node, context: Context) -> Node:
        raise error

    monkeypatch.setattr(rules, "RULES", (*rules.RULES, raise_error))
    made = planned("SELECT a FROM t WHERE b > 1", binder).finish("q")
    assert (made.strategy, made.sql) == ("gathered", "SELECT a FROM t WHERE b > 1")


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("no_such_column > 1", "its stages are not valid"),
        ("EXISTS (FROM scan9)", "a stage reads a stage that is not among its inputs"),
    ],
)
def test_stages_that_cannot_run_are_not_used(
    condition: str, reason: str, binder: DuckDBBinder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add_condition(node: Node, context: Context) -> Node:
        return Filter(node, Expr(condition, "BOOLEAN"))

    monkeypatch.setattr(rules, "RULES", (*rules.RULES, add_condition))
    made = planned("SELECT a FROM t WHERE b > 1", binder).finish("q")
    assert (made.strategy, made.sql) == ("gathered", "SELECT a FROM t WHERE b > 1")
    assert made.reason.startswith(reason)


def test_stages_of_other_types_are_not_used(
    binder: DuckDBBinder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change_types(node: Node, context: Context) -> Node:
        return Extend(node, {column: Expr("'text'") for column in columns_of(node)})

    monkeypatch.setattr(rules, "RULES", (*rules.RULES, change_types))
    made = planned("SELECT a FROM t", binder).finish("q")
    assert made.reason == "its stages give columns of other names or types"


def test_a_table_named_like_a_stage(binder: DuckDBBinder) -> None:
    made = planned("SELECT t.a, count(*) FROM fold1 JOIN t USING (a) GROUP BY ALL", binder)
    assert set(made.finish("q").inputs) == {"t", "fold1"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM information_schema.tables",
        "SELECT a, (SELECT count(*) FROM duckdb_columns()) FROM t",
        "SELECT * FROM pragma_table_info('t')",
        "SHOW TABLES",
        "SELECT count(*) FROM pg_catalog.pg_class",
    ],
)
def test_the_catalog_is_refused(sql: str, binder: DuckDBBinder) -> None:
    with pytest.raises(UsageError, match=r"query q: it reads DuckDB's own catalog"):
        planned(sql, binder)


def test_a_pivot_without_values_is_refused_with_a_remedy(binder: DuckDBBinder) -> None:
    with pytest.raises(UsageError, match=r"query q: .* ON column IN \('one', 'two'\)"):
        planned("PIVOT t ON kind USING sum(a)", binder)


def test_numbers_of_rows_are_refused(binder: DuckDBBinder) -> None:
    with pytest.raises(UsageError, match="row_number"):
        planned("SELECT rowid, a FROM t", binder)
    assert planned("SELECT 'rowid' AS rowid FROM t", binder).finish("q").strategy == "scaled"


RAISING = "CAST(t.s AS INTEGER) > 5"


@pytest.mark.parametrize(
    ("sql", "stays"),
    [
        (f"SELECT t.a FROM t JOIN u ON t.a = u.k WHERE {RAISING}", True),
        (f"SELECT t.a FROM t JOIN u ON t.a = u.k AND {RAISING}", True),
        (f"SELECT t.a FROM t SEMI JOIN u ON t.a = u.k WHERE {RAISING}", True),
        (f"SELECT t.a FROM t WHERE EXISTS (FROM u WHERE u.k = t.a) AND {RAISING}", True),
        ("SELECT a FROM (SELECT a, s, kind || 'x' AS c FROM t) AS t "
         f"WHERE c = '1x' AND {RAISING}", False),
        (f"SELECT t.a FROM t WHERE {RAISING}", False),
    ],
)  # fmt: skip
def test_what_can_raise_is_not_evaluated_before_joins(
    sql: str, stays: bool, binder: DuckDBBinder
) -> None:
    made = planned(sql, binder)
    assert made.finish("q").strategy == "scaled"
    assert ('CAST("s"' not in scan_of(made, "t")) is stays


def test_what_can_raise_does_not_overtake(binder: DuckDBBinder) -> None:
    sql = f"SELECT a FROM (SELECT a, s, a / 2 AS c FROM t) AS t WHERE c > 1 AND {RAISING}"
    text = scan_of(planned(sql, binder), "t")
    assert text.index("/ 2") < text.index("CAST")


@pytest.mark.parametrize("condition", ["t.n = u.name", "CAST(t.s AS INTEGER) = u.k"])
def test_keys_that_can_raise_are_not_hashed(condition: str, binder: DuckDBBinder) -> None:
    made = planned(f"SELECT t.a FROM t JOIN u ON {condition}", binder)
    assert {scan.partition.kind for scan in made.scans} <= {"spread", "gather"}


def test_what_cannot_raise_is_evaluated_early(binder: DuckDBBinder) -> None:
    made = planned("SELECT t.a FROM t JOIN u ON t.a = u.k WHERE t.s LIKE 'x%'", binder)
    assert "LIKE" in scan_of(made, "t")


def test_a_column_that_can_raise_is_computed_for_its_own_query_only(binder: DuckDBBinder) -> None:
    texts = {"q": "SELECT a FROM t", "r": "SELECT CAST(s AS INTEGER) FROM t"}
    made = plan(texts, SCHEMAS, binder=binder)
    (own,) = [scan for scan in made.scans if "CAST" in scan.sql]
    assert own.queries == ("r",)
