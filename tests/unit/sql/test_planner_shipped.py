"""The ten shipped queries: split, sharing their work, the same bits however they are cut."""

import decimal
import random
import tomllib
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from duckdb.func import PythonUDFType
from tests.fuzz.check import compare
from tests.fuzz.tables import cut
from tests.harness.plan_run import PlanRun

import caudal
from caudal.duck.binder import DuckDBBinder
from caudal.duck.sandbox import Sandbox, Types
from caudal.sql.parameters import bind_parameters
from caudal.sql.planner import Plan, plan

SCHEMAS = {
    "movies": {
        "movies": {
            "id": "BIGINT", "title": "VARCHAR", "genres": "VARCHAR[]", "countries": "VARCHAR[]",
            "languages": "VARCHAR[]", "release_date": "DATE", "budget": "DECIMAL(38,6)",
            "revenue": "DECIMAL(38,6)", "overview": "VARCHAR",
        },
        "ratings": {"user_id": "BIGINT", "movie_id": "BIGINT", "rating": "DECIMAL(18,9)"},
        "credits": {"id": "BIGINT", "actors": "VARCHAR[]"},
    },
    "books": {
        "books": {
            "title": "VARCHAR", "authors": "VARCHAR[]", "publisher": "VARCHAR",
            "categories": "VARCHAR[]", "year": "INTEGER",
        },
        "reviews": {"title": "VARCHAR", "score": "DECIMAL(18,9)", "text": "VARCHAR"},
    },
}  # fmt: skip
FUNCTIONS = {"sentiment": "DOUBLE"}
WORDS = ["good", "bad", "fine", "dull", "rare"]
COUNTRIES = ["Argentina", "Spain", "Peru"]


def register(connection: duckdb.DuckDBPyConnection) -> None:
    """A stand-in for the real sentiment: any function of the text alone will do."""

    def score(texts: Any) -> Any:
        return pa.array([((len(t or "") * 7) % 21 - 10) / 13 for t in texts.to_pylist()])

    connection.create_function("sentiment", score, ["VARCHAR"], "DOUBLE", type=PythonUDFType.ARROW)


def queries(app: str) -> dict[str, str]:
    folder = Path(caudal.__file__).parent / "apps" / app
    values = tomllib.loads((folder / "app.toml").read_text())["parameters"]
    small = {"min_reviews": 3, "min_decades": 3}
    values = {**values, **{name: small[name] for name in small if name in values}}
    files = sorted((folder / "queries").glob("*.sql"))
    return {file.stem: bind_parameters(file.read_text(), values, file.name) for file in files}


def _rows(app: str, table: str, chance: random.Random) -> dict[str, list[Any]]:
    def some(words: list[str]) -> list[str]:
        return chance.sample(words, chance.randrange(0, len(words)))

    def number() -> decimal.Decimal:
        return decimal.Decimal(chance.randrange(0, 50)) / 10

    columns: dict[str, Any] = {
        "id": lambda: chance.randrange(30),
        "movie_id": lambda: chance.randrange(30),
        "user_id": lambda: chance.randrange(9),
        "title": lambda: f"distributed {chance.randrange(12)}",
        "genres": lambda: some(WORDS),
        "countries": lambda: some(COUNTRIES),
        "languages": lambda: some(WORDS),
        "authors": lambda: some(WORDS),
        "actors": lambda: some(WORDS),
        "categories": lambda: some(["Fiction", "Computers", "Juvenile Fiction"]),
        "release_date": lambda: date(1999, 1, 1) + timedelta(days=chance.randrange(4000)),
        "budget": number,
        "revenue": number,
        "rating": number,
        "score": number,
        "overview": lambda: " ".join(some(WORDS)),
        "text": lambda: " ".join(some(WORDS)),
        "publisher": lambda: chance.choice([None, "x", "y"]),
        "year": lambda: chance.randrange(1940, 2024),
    }
    size = chance.choice([0, 1, 60, 200])
    return {column: [columns[column]() for _ in range(size)] for column in SCHEMAS[app][table]}


def _arrow(kind: str) -> pa.DataType:
    if kind.endswith("[]"):
        return pa.list_(_arrow(kind[:-2]))
    if kind.startswith("DECIMAL"):
        width, scale = kind[8:-1].split(",")
        return pa.decimal128(int(width), int(scale))
    plain = {"BIGINT": pa.int64(), "INTEGER": pa.int32(), "DATE": pa.date32()}
    return plain.get(kind, pa.string())


def make_tables(app: str, chance: random.Random) -> dict[str, pa.Table]:
    made = {}
    for table, schema in SCHEMAS[app].items():
        rows = _rows(app, table, chance)
        made[table] = pa.table({c: pa.array(rows[c], _arrow(k)) for c, k in schema.items()})
    return made


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[tuple[Sandbox, Sandbox]]:
    stages, results = Sandbox(register=register), Sandbox(register=register, types=Types.PLAIN)
    yield stages, results
    stages.close()
    results.close()


@pytest.fixture(scope="module", params=["movies", "books"])
def app(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def planned(app: str) -> Plan:
    binder = DuckDBBinder(SCHEMAS[app], register)
    made = plan(queries(app), SCHEMAS[app], scalar_functions=FUNCTIONS, binder=binder)
    binder.close()
    return made


def test_every_shipped_query_is_split(planned: Plan) -> None:
    found = {finish.query: (finish.strategy, finish.reason) for finish in planned.finishes}
    assert found == {f"q{number}": ("scaled", "") for number in range(1, 6)}


def test_texts_do_not_leave_the_scan(planned: Plan) -> None:
    for scan in planned.scans:
        listed = scan.sql.split(" FROM ")[0]
        for column in ("text", "overview"):
            assert f'"{column}" AS' not in listed
    assert len([scan for scan in planned.scans if "sentiment" in scan.operators]) == 1
    assert not [fold for fold in planned.folds if "sentiment(" in fold.sql]


def test_q3_and_q4_of_books_share_every_stage() -> None:
    made = plan(queries("books"), SCHEMAS["books"], scalar_functions=FUNCTIONS)
    q3 = {s.name for s in made.stages() if "q3" in s.queries}
    q4 = {s.name for s in made.stages() if "q4" in s.queries}
    assert q3 == q4
    assert made.finish("q3").inputs == made.finish("q4").inputs


def test_reviews_are_grouped_where_they_are_read_and_sentiment_apart() -> None:
    made = plan(queries("books"), SCHEMAS["books"], scalar_functions=FUNCTIONS)
    counted, scored = [scan for scan in made.scans if scan.table == "reviews"]
    assert (counted.queries, scored.queries) == (("q3", "q4"), ("q5",))
    assert "sentiment" not in counted.sql
    assert "sentiment" in scored.sql
    for reviews in (counted, scored):
        assert "partial group" in reviews.operators
        assert reviews.partition.kind == "hash"


def test_queries_that_need_the_same_sentiment_share_its_scan() -> None:
    least = "SELECT title, min(sentiment(text)) FROM reviews GROUP BY title"
    best = "SELECT title, max(sentiment(text)) FROM reviews GROUP BY title"
    asked = {"least": least, "best": best}
    made = plan(asked, SCHEMAS["books"], scalar_functions=FUNCTIONS)
    (scan,) = made.scans
    assert scan.queries == ("least", "best")


def _shuffled(numbers: Sequence[int]) -> list[int]:
    return random.Random(len(numbers)).sample(numbers, len(numbers))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(3))
def test_answers_are_bit_identical_however_the_work_is_cut(
    app: str, planned: Plan, sandboxes: tuple[Sandbox, Sandbox], seed: int
) -> None:
    tables = make_tables(app, random.Random(seed))
    seen: dict[str, pa.Table] = {}
    for variant in range(5):
        chance = random.Random(100 * seed + variant)
        batches = {name: cut(rows, chance) for name, rows in tables.items()}
        partitions = chance.randrange(1, 6)
        run = PlanRun(planned, partitions, *sandboxes, hinted=variant % 2 == 1)
        answers = run.answers(batches, _shuffled)
        for name, rows in answers.items():
            assert rows.equals(seen.setdefault(name, rows)), name


@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_duckdb(
    app: str, planned: Plan, sandboxes: tuple[Sandbox, Sandbox], seed: int
) -> None:
    tables = make_tables(app, random.Random(seed))
    chance = random.Random(seed)
    batches = {name: cut(rows, chance) for name, rows in tables.items()}
    answers = PlanRun(planned, 3, *sandboxes).answers(batches)
    with duckdb.connect(config={"threads": 1}) as direct:
        register(direct)
        for name, rows in tables.items():
            direct.register(name, rows)
        for name, sql in queries(app).items():
            compare(direct.sql(sql).to_arrow_table(), answers[name], ordered=True)
        direct.remove_function("sentiment")


def test_a_hint_drops_rows_and_changes_no_answer(sandboxes: tuple[Sandbox, Sandbox]) -> None:
    made = plan(queries("books"), SCHEMAS["books"], scalar_functions=FUNCTIONS)
    stages = {scan.name: scan for scan in made.scans}
    hints = [hint for hint in made.hints if stages[hint.scan].table == "reviews"]
    assert len(hints) == 2
    assert {stages[stage].table for hint in hints for stage, _ in hint.sources} == {"books"}
    tables = make_tables("books", random.Random(5))
    titles = pa.array(["nobody asks"] * tables["reviews"].num_rows)
    unasked = tables["reviews"].set_column(0, "title", titles)
    tables["reviews"] = pa.concat_tables([tables["reviews"], unasked])
    batches = {name: [rows] for name, rows in tables.items()}
    plain, hinted = (
        PlanRun(made, 2, *sandboxes, hinted=flag).answers(batches) for flag in (False, True)
    )
    assert all(plain[name].equals(hinted[name]) for name in plain)
