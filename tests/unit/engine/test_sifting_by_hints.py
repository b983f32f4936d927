"""Batches whose rows are sifted by hints: the same counts and rejects, fewer rows to read."""

from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from caudal.application import find_application
from caudal.duck import steps
from caudal.duck.functions import register_functions
from caudal.duck.job_plan import make_plan
from caudal.duck.sandbox import Sandbox, SandboxLimits
from caudal.files.batches import cut_files
from caudal.formats import batch, mapped
from caudal.jobs.plan import JobPlan, from_json, to_json
from caudal.kernels.hashing import partition_of
from caudal.kernels.sentiment import load_model
from caudal.model import Application, Query, Table

HASHING = steps.Hashing(3, partition_of)
BIG = b"""k,v
a,1
b,2
,3
"a
a",4
c,x
c,5,6
b,
\xff,7
z,8
"""


def application(sql: str, cleaning: str) -> Application:
    return Application(
        name="little",
        title="Little",
        folder=Path(),
        tables=(
            Table("few", ("few.csv",), ("k",), "SELECT k FROM raw", "few.sql"),
            Table("big", ("big.csv",), ("k", "v"), cleaning, "big.sql"),
        ),
        queries=(Query("q1", "One", sql, "q1.sql"),),
        parameters={},
        sentiment="lexicon",
    )


def planned(sql: str, cleaning: str) -> JobPlan:
    app = application(sql, cleaning)
    return from_json(to_json(make_plan(app, None, {}, load_model("lexicon"))))


CLEANING = """
    SELECT k, TRY_CAST(number_text(v) AS BIGINT) AS v,
        CASE WHEN k IS NULL THEN 'no key' WHEN v IS NULL THEN 'no value' END AS reject
    FROM raw
"""
JOINED = "SELECT big.k, sum(big.v) AS v FROM big JOIN few ON big.k = few.k GROUP BY big.k"


def test_rows_that_the_hint_would_drop_are_counted_and_not_read(tmp_path: Path) -> None:
    split = planned(JOINED, CLEANING)
    file = tmp_path / "big.csv"
    file.write_bytes(BIG)
    (data,) = cut_files("big", [file], 1 << 20)
    index, records = batch.view(data, "big")
    one = split.table("big")
    (scan,) = one.scans
    (hint,) = (hint for hint in split.plan.hints if hint.scan == scan.name)
    stage, column = hint.sources[0]
    assert one.prefiltered is not None
    with Sandbox(register=partial(register_functions, model=load_model("lexicon"))) as sandbox:
        few = pa.table({column: ["a", "nobody"]})
        hinted = steps.with_hint(scan, hint, lambda name: {stage: few}[name], sandbox)
        objects = []
        for work in (
            steps.TableWork(one.cleaning, (hinted,), {}),
            steps.table_work(one, [hinted]),
        ):
            context = steps.StepContext(split, HASHING, lambda _: sandbox, SandboxLimits())
            cleaned = steps.clean_batch(context, work, index, records)
            data = steps.map_rows(context, work, index, cleaned)
            objects.append((mapped.open_bytes(data), cleaned))
    (plain, whole), (prefiltered, left) = objects
    assert prefiltered.index.rows == plain.index.rows == 6
    assert prefiltered.rejects() == plain.rejects()
    reasons = [one.reason for one in plain.rejects()]
    assert reasons == ["no key", "too many fields", "no value"]
    assert prefiltered.index.repaired == plain.index.repaired
    assert left.rows["k"].to_pylist() == ["a"]
    assert whole.rows.num_rows == 6
    for number in range(HASHING.partitions):
        assert prefiltered.slice(scan.name, number) == plain.slice(scan.name, number)


@pytest.mark.parametrize(
    ("sql", "cleaning"),
    [
        (JOINED, "SELECT lower(k) AS k, v FROM raw"),  # the key is not a column of the file
        (JOINED.replace("big.k = ", "lower(big.k) = "), "SELECT k, v FROM raw"),
        (f"{JOINED} UNION ALL SELECT 'all', count(*) FROM big", "SELECT k, v FROM raw"),
        (JOINED.replace("JOIN few", "LEFT JOIN few"), "SELECT k, v FROM raw"),
    ],
)
def test_where_a_look_at_the_key_does_not_decide_nothing_is_sifted(sql: str, cleaning: str) -> None:
    cleaning = cleaning.replace("v FROM", "TRY_CAST(number_text(v) AS BIGINT) AS v FROM")
    assert planned(sql, cleaning).table("big").prefiltered is None


@pytest.mark.parametrize(("name", "prefiltered"), [("books", {"reviews"}), ("movies", {"ratings"})])
def test_the_large_shipped_tables_are_sifted(name: str, prefiltered: set[str]) -> None:
    app = find_application(name)
    split = make_plan(app, None, {}, load_model(app.sentiment))
    assert {one.table.name for one in split.maps if one.prefiltered} == prefiltered
