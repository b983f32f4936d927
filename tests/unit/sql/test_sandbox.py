"""What a user's SQL can do in the sandbox, and what it cannot."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from caudal.duck import containment
from caudal.duck import sandbox as sandbox_module
from caudal.duck.sandbox import Sandbox, SandboxLimits, Types
from caudal.errors import InterruptedQueryError, QueryError, UsageError


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxLimits(memory_bytes=200 << 20, seconds=1.0)) as made:
        yield made


def test_a_select_sees_the_relations_it_is_given(sandbox: Sandbox) -> None:
    rows = sandbox.select("SELECT sum(a) AS s FROM t", {"t": pa.table({"a": [1, 2]})})
    assert rows.to_pylist()[0]["s"] is not None


def test_relations_of_an_earlier_call_are_gone(sandbox: Sandbox) -> None:
    sandbox.select("FROM t", {"t": pa.table({"a": [1]})})
    with pytest.raises(QueryError, match="t does not exist"):
        sandbox.select("FROM t", {})


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM duckdb_secrets()",
    ],
)
def test_files_are_out_of_reach(sandbox: Sandbox, sql: str) -> None:
    with pytest.raises(QueryError):
        sandbox.select(sql, {})


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT content FROM read_text('{folder}/left.csv')",
        "SELECT content FROM read_blob('{folder}/*')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM read_csv('{folder}/left.csv')",
        "SELECT * FROM read_json('{folder}/left.csv')",
        "SELECT * FROM sniff_csv('{folder}/left.csv')",
        "SELECT * FROM '{folder}/left.csv'",
        'SELECT * FROM "{folder}/left.csv"',
        "SUMMARIZE '{folder}/left.csv'",
        "DESCRIBE '{folder}/left.csv'",
        "SELECT (SELECT max(a) FROM read_csv('{folder}/left.csv'))",
        "SELECT list_transform([1], x -> (SELECT max(a) FROM read_csv('{folder}/left.csv')))",
        "SELECT 1 LIMIT (SELECT count(*) FROM glob('{folder}/*'))",
        "WITH c AS (FROM \"Read_Text\"('{folder}/left.csv')) FROM c",
        "SELECT * FROM query('FROM read_text(''{folder}/left.csv'')')",
        "SELECT * FROM query_table('{folder}/left.csv')",
        "SELECT * FROM json_execute_serialized_sql(json_serialize_sql("
        "'FROM read_text(''{folder}/left.csv'')'))",
        "SELECT * FROM duckdb_temporary_files()",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM information_schema.tables",
        "SHOW TABLES",
        "FROM t, glob('{folder}/*')",
    ],
)
def test_what_was_spilled_is_out_of_reach(sql: str, tmp_path: Path) -> None:
    """DuckDB itself would let SQL read the folder that it spills to."""
    (tmp_path / "left.csv").write_text("a,b\nof another tenant,1\n")
    with Sandbox(SandboxLimits(spill=tmp_path)) as made:
        with pytest.raises(QueryError, match=r"cannot be used here|does not exist"):
            made.select(sql.format(folder=tmp_path), {"t": pa.table({"a": [1]})})
        assert made.select("SELECT 1 AS a", {}).num_rows == 1


@pytest.mark.parametrize("name", ["arrow_scan", "arrow_scan_dumb", "pandas_scan"])
def test_no_address_in_memory_can_be_read(sandbox: Sandbox, name: str) -> None:
    with pytest.raises(QueryError, match=f"{name} cannot be used here"):
        sandbox.select(f"FROM {name}(1::POINTER, 2::POINTER, 3::POINTER)", {})


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "sql",
    [
        'WITH a AS (FROM T), "b/c.csv" AS (FROM a) SELECT * FROM "b/c.csv"',
        "WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r WHERE a < 3) FROM r",
        "FROM (PIVOT t ON a IN (1, 2) USING count(*))",
        "SELECT * FROM t, range(2) r(x), generate_series(1, 2) g(y), unnest([a]) u(z)",
        "SELECT * FROM json_each('[1]')",
        "SUMMARIZE t",
        "SELECT " + " + ".join(["a"] * 900) + " AS s FROM t",
        "VALUES (1)",
    ],
)
def test_what_only_computes_is_allowed(sql: str) -> None:
    with Sandbox() as made:
        assert made.select(sql, {"t": pa.table({"a": [1]})}).num_rows > 0


def test_variables_of_the_process_are_out_of_reach(sandbox: Sandbox) -> None:
    secret = pa.table({"a": [1]})
    with pytest.raises(QueryError, match="secret does not exist"):
        sandbox.select("SELECT * FROM secret", {})
    assert secret.num_rows == 1


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO '{folder}/stolen.csv'",
        "ATTACH '{folder}/other.db'",
        "SET threads = 4",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "INSTALL httpfs",
        "LOAD httpfs",
        "CREATE TABLE t (a INTEGER)",
        "PRAGMA version",
        "EXPORT DATABASE '{folder}/all'",
        "SELECT 1; SELECT 2",
        "SELECT 1; COPY (SELECT 1) TO '{folder}/stolen.csv'",
        "",
    ],
)
def test_only_one_select_is_accepted(sandbox: Sandbox, sql: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one SELECT"):
        sandbox.select(sql.format(folder=tmp_path), {})
    assert not list(tmp_path.iterdir())


def test_an_endless_query_is_stopped(sandbox: Sandbox) -> None:
    with pytest.raises(QueryError, match="more than 1 seconds"):
        sandbox.select("SELECT count(*) FROM range(1000000000000)", {})
    assert sandbox.select("SELECT 1 AS a", {}).num_rows == 1


def test_a_memory_bomb_is_stopped() -> None:
    with Sandbox(SandboxLimits(memory_bytes=100 << 20)) as small:
        with pytest.raises(QueryError, match="more than 100 MiB"):
            small.select("SELECT list(range) FROM range(1000000000)", {})
        assert small.select("SELECT 1 AS a", {}).num_rows == 1


def test_what_does_not_fit_is_spilled_where_that_is_allowed(tmp_path: Path) -> None:
    limits = SandboxLimits(memory_bytes=60 << 20, spill=tmp_path / "spill")
    with Sandbox(limits) as small:
        sql = (
            "SELECT max(y) AS m FROM (SELECT y, row_number() OVER (ORDER BY y) AS n "
            "FROM (SELECT md5(CAST(range AS VARCHAR)) AS y FROM range(1000000))) WHERE n > 5"
        )
        assert small.select(sql, {}).num_rows == 1


def test_an_error_is_one_line(sandbox: Sandbox) -> None:
    with pytest.raises(QueryError) as caught:
        sandbox.select("SELECT nothing FROM (SELECT 1 AS a)", {})
    assert "\n" not in str(caught.value)


def test_large_integers_travel_without_loss_and_leave_as_decimals() -> None:
    with Sandbox() as stage, Sandbox(types=Types.PLAIN) as result:
        rows = stage.select("SELECT 170141183460469231731687303715884105727::HUGEINT AS h", {})
        again = stage.select("SELECT typeof(h) AS t, h FROM t", {"t": rows})
        assert again.column("t").to_pylist() == ["HUGEINT"]
        small = stage.select("SELECT 5::HUGEINT AS h", {})
        left = result.select("SELECT h FROM t", {"t": small})
        assert left.schema.field("h").type == pa.decimal128(38, 0)


def test_a_full_disk_is_not_the_query_s_fault(tmp_path: Path) -> None:
    """The folder for spilling is a file: nothing can be written there."""
    nowhere = tmp_path / "file"
    nowhere.write_text("taken")
    with Sandbox(SandboxLimits(memory_bytes=60 << 20, spill=nowhere / "spill")) as small:
        with pytest.raises(OSError, match=r"spill|directory"):
            small.select(
                "SELECT max(a) FROM (SELECT md5(range::VARCHAR) AS a, random() AS r "
                "FROM range(3000000) ORDER BY r LIMIT 2000000)",
                {},
            )
        assert small.select("SELECT 1 AS a", {}).num_rows == 1


def test_asleep_is_time_too(sandbox: Sandbox) -> None:
    with pytest.raises(QueryError, match="more than 1 seconds"):
        sandbox.select("SELECT sleep_ms(100000000)", {})


def test_a_watcher_that_fails_now_and_then_still_stops_an_endless_query(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, failed = containment._memory, list[bool]()

    def memory() -> tuple[int, int]:
        if threading.current_thread().name == "containment" and len(failed) < 3:
            failed.append(True)
            raise PermissionError
        return real()

    monkeypatch.setattr(containment, "_memory", memory)
    with pytest.raises(QueryError, match="more than 1 seconds"):
        sandbox.select("SELECT sleep_ms(100000000)", {})
    assert len(failed) == 3


def test_an_interrupt_while_relations_are_let_go_leaves_none(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def interrupted(
        connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table
    ) -> Iterator[None]:
        connection.register(name, rows)
        yield
        raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")

    with monkeypatch.context() as patched:
        patched.setattr(sandbox_module, "readable", interrupted)
        with pytest.raises(InterruptedQueryError):
            sandbox.select("FROM t", {"t": pa.table({"a": [1]})})
    with pytest.raises(QueryError, match="t does not exist"):
        sandbox.select("FROM t", {})


@pytest.mark.parametrize(
    ("column", "told"), [("word", " when casting from source column max(word)"), ("scan1__2", "")]
)
def test_a_failing_cast_names_only_columns_of_the_user(column: str, told: str) -> None:
    rows = pa.table({column: ["x"]})
    with Sandbox() as sandbox, pytest.raises(QueryError) as raised:
        sandbox.select(f"SELECT CAST(max({column}) AS INTEGER) AS n FROM t", {"t": rows})
    assert str(raised.value) == f"Could not convert string 'x' to INT32{told}"
