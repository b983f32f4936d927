"""The split engine under a memory limit: outputs lie in files, and what is too small is refused."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from tests.harness.waiting import GUARD_SECONDS

from caudal.duck.sandbox import SandboxLimits
from caudal.duck.step_inputs import FileRows, put_together
from caudal.errors import UsageError
from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.model import Application, Query, Table
from caudal.run_options import Engine, RunOptions

ROWS = 20_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("data")
    lines = (f"{row},{row % 7},{'word ' * 20}{row}" for row in range(ROWS))
    (made / "t.csv").write_text("id,k,text\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return made


def application(folder: Path, *texts: str) -> Application:
    sql = "SELECT id::INTEGER AS id, k::INTEGER AS k, text, NULL::VARCHAR AS reject FROM raw"
    table = Table("t", ("t.csv",), ("id", "k", "text"), sql, "t.sql")
    queries = tuple(Query(f"q{n}", text, text, f"q{n}.sql") for n, text in enumerate(texts))
    return Application("limited", "limited", folder, (table,), queries)


def test_a_limit_changes_no_row(folder: Path) -> None:
    app = application(
        folder,
        "SELECT k, count(*) AS n, max(text) AS m FROM t GROUP BY k ORDER BY k",
        "SELECT id, row_number() OVER (ORDER BY md5(text)) AS n FROM t ORDER BY id",
        "SELECT count(*) AS n FROM t AS a JOIN t AS b ON a.text = b.text",
        "SELECT k FROM t WHERE id < 0",
    )
    plain, limited = (
        run_with(
            Engine.SPLIT,
            app,
            Sources(folder),
            options=RunOptions(threads=2, partitions=3, batch_bytes=100_000, memory_limit=limit),
        )
        for limit in (None, 700_000_000)
    )
    for name in plain:
        assert plain[name].table.equals(limited[name].table)


def test_a_limit_that_is_too_small_is_refused(folder: Path) -> None:
    options = RunOptions(threads=2, memory_limit=100_000_000)
    with pytest.raises(UsageError, match=r"100MB is too small .* give at least 470MB"):
        run_with(Engine.SPLIT, application(folder, "FROM t"), Sources(folder), options=options)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT length(repeat('x', 2000000000)) FROM t LIMIT 1",
        "SELECT max(length(repeat(text, 10000))) FROM t",
        "SELECT string_agg(repeat(text, 1000), '') FROM t",
        "SELECT count(*) FROM t WHERE len(range(100000000 + id)) > 3",
    ],
)
def test_a_bomb_stays_within_the_limit(sql: str, folder: Path) -> None:
    script = """
import sys
from pathlib import Path
from caudal.local.engines import run_with
from caudal.files.sources import Sources
from caudal.run_options import Engine, RunOptions
from caudal.errors import QueryError
from tests.harness.peak_memory import peak_mib
from tests.integration.engine.test_split_memory import application
folder = Path(sys.argv[1])
def run(sql):
    options = RunOptions(threads=2, memory_limit=600_000_000)
    return run_with(Engine.SPLIT, application(folder, sql), Sources(folder), options=options)
try:
    run(sys.argv[2])
except QueryError as error:
    print(error)
print(run("SELECT count(*) AS n FROM t")["q0"].table.to_pylist())
print(peak_mib())
"""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", script, str(folder), sql],
        capture_output=True,
        text=True,
        timeout=GUARD_SECONDS,
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == 0, done.stderr[-2000:]
    error, answer, peak = done.stdout.splitlines()
    assert "MiB of memory" in error
    assert answer == f"[{{'n': {ROWS}}}]"
    assert int(peak) < 600 + 128 + 200  # the limit, the reserve, and the pages of libraries


def test_a_large_input_is_put_together_in_a_file_and_leaves_none(tmp_path: Path) -> None:
    rows = pa.table({"a": list(range(1000))})
    limits = SandboxLimits(memory_bytes=4 * 3 * rows.nbytes, spill=tmp_path)
    small = put_together(iter([rows] * 3), limits)
    assert isinstance(small, pa.Table)
    large = put_together(iter([rows] * 4), limits)
    assert isinstance(large, FileRows)
    assert large.num_rows == 4000
    assert [large.read_all() for _ in range(2)] == [pa.concat_tables([rows] * 4)] * 2
    assert len(list(tmp_path.iterdir())) == 1
    del large
    assert list(tmp_path.iterdir()) == []
    assert isinstance(put_together(iter([rows] * 3), limits, inputs=2), FileRows)
    nowhere = SandboxLimits(memory_bytes=1)
    assert isinstance(put_together(iter([rows] * 4), nowhere), pa.Table)


LIMIT_MIB = 800
LARGE = (
    "SELECT a.id AS i, b.id AS j, b.text AS x FROM t AS a JOIN t AS b ON a.k = b.k "
    "WHERE a.id % 33 = 0"
)


def test_large_inputs_of_a_step_stay_within_the_limit(folder: Path) -> None:
    """More than a million rows, some 200 MB, leave the fold and enter the finish."""
    done = _run_script(
        """
import sys
from pathlib import Path
from caudal.local.engines import run_with
from caudal.files.sources import Sources
from caudal.run_options import Engine, RunOptions
from tests.harness.peak_memory import peak_mib
from tests.integration.engine.test_split_memory import LARGE, LIMIT_MIB, application
folder = Path(sys.argv[1])
options = RunOptions(threads=2, memory_limit=LIMIT_MIB << 20)
answers = run_with(Engine.SPLIT, application(folder, LARGE), Sources(folder), options=options)
print(len(answers["q0"]), peak_mib())
""",
        str(folder),
    )
    rows, peak = map(int, done.split())
    assert rows == sum(len(range(k, ROWS, 7)) for k in (row % 7 for row in range(0, ROWS, 33)))
    assert peak < LIMIT_MIB + 128  # the limit and the reserve; most runs stay below 560 MiB


def test_a_star_stays_within_the_limit(tmp_path: Path) -> None:
    """Seven tables, the one that connects them last: their product has 10^18 rows."""
    write_star(tmp_path)
    done = _run_script(
        """
import sys
from pathlib import Path
from caudal.local.engines import run_with
from caudal.files.sources import Sources
from caudal.run_options import Engine, RunOptions
from tests.harness.peak_memory import peak_mib
from tests.integration.engine.test_split_memory import star_application
options = RunOptions(threads=2, memory_limit=600_000_000)
answers = run_with(Engine.SPLIT, star_application(), Sources(Path(sys.argv[1])), options=options)
print(answers["star"].rows(), peak_mib())
""",
        str(tmp_path),
    )
    found, peak = done.rsplit(maxsplit=1)
    assert found == f"[{{'n': {STAR_ROWS}, 's': {sum(range(STAR_ROWS))}}}]"
    assert int(peak) < 600


STAR_ROWS, DIMENSION_ROWS = 30_000, 1_000


def write_star(folder: Path) -> None:
    keys = range(1, 7)
    lines = (
        ",".join(str(row * key % DIMENSION_ROWS) for key in keys) + f",{row}\n"
        for row in range(STAR_ROWS)
    )
    (folder / "f.csv").write_text(",".join(f"k{k}" for k in keys) + ",v\n" + "".join(lines))
    for key in keys:
        names = "".join(f"{row},name {row}\n" for row in range(DIMENSION_ROWS))
        (folder / f"d{key}.csv").write_text("k,name\n" + names)


def star_application() -> Application:
    keys = [f"k{key}" for key in range(1, 7)]
    columns = (*keys, "v")
    listed = ", ".join(f"{name}::INTEGER AS {name}" for name in columns)
    tables = [Table("f", ("f.csv",), columns, f"SELECT {listed} FROM raw", "f.sql")]
    for number in range(1, 7):
        sql = "SELECT k::INTEGER AS k, name FROM raw"
        tables.append(Table(f"d{number}", (f"d{number}.csv",), ("k", "name"), sql, "d.sql"))
    where = " AND ".join(f"f.k{n} = d{n}.k AND d{n}.name <> ''" for n in range(1, 7))
    text = f"SELECT count(*) AS n, sum(v) AS s FROM d1, d2, d3, d4, d5, d6, f WHERE {where}"
    return Application("star", "", Path(), tuple(tables), (Query("star", "", text, "star.sql"),))


def _run_script(script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=GUARD_SECONDS,
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()
