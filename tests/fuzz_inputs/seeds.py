"""Honest objects of every kind, small, from which damaged ones are made."""

import datetime
import decimal
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import msgspec
import pyarrow as pa

from caudal.duck.job_plan import make_plan
from caudal.formats import batch, job, mapped, merged, message, outputs
from caudal.formats import outcomes as ending
from caudal.formats.keys import Message, Task
from caudal.formats.outcomes import End, Outcome
from caudal.jobs.plan import to_json
from caudal.kernels.sentiment import load_model
from caudal.model import Application, Query, Table
from caudal.process.heart import Heartbeat, HeartSession
from caudal.process.pulse import HostRecord, Pulse

COLUMNS = ("k", "n", "text")
RECORDS = (
    b"a,1,one\nb,2,two\nc,3,three\n",
    b'a,1,"one, two"\r\n"b ""c""",2.5,"a\nb"\n\n\nc,-3,\n',
    b"a\nb,2\nc,3,x,y\n" * 3,
    b'"open,1,x\nb,2,y\n"c" d,3,z\n' * 4,
    b"x,123456789012345678,y\nx,0.0000001,y\nx,-7,y\n" * 9,
    b"\n\r\n \n,,\n,,\n",
    b"\xff\xfe,1,\xc3\n" * 5,
    b"a,1,this is a rather long text of more than twelve bytes\n" * 30,
)
TEXTS = (
    "a very good film, not bad at all :-) (!)",
    "GREAT!!! ... n't don't \u201cquoted\u201d U.S. Mr. T. o.O > .> \u00b0o\u00b0",
    "[{'id': 1, 'name': 'x'}, {'name': \"y\\n\"}]",
    "['a', \"b\\x41\\u00e9\\ud800\", None, -1.5e3, [1, {'k': True}]]",
    "['\\N{DIGIT ONE}', b'x', 0x10, ('a',)]",
    "",
    "8-) 8) :c) =] (: \u2028\u00a0\u3000 end.",
    "x" * 70,
)


def tables() -> list[pa.Table]:
    """Columns of all kinds that come in streams."""
    rows = list(range(-3, 13))
    flat: dict[str, Any] = {
        "small": pa.array(rows, pa.int8()),
        "big": pa.array(rows, pa.int64()),
        "odd": pa.array([None if n % 3 else abs(n) for n in rows], pa.uint32()),
        "float": pa.array([n / 7 for n in rows]),
        "bool": pa.array([n % 2 == 0 for n in rows]),
        "decimal": pa.array([decimal.Decimal(n) / 4 for n in rows], pa.decimal128(12, 2)),
        "day": pa.array([datetime.date(2020, 1, 1)] * len(rows)),
        "time": pa.array(rows, pa.int64()).cast(pa.timestamp("us")),
        "text": pa.array([TEXTS[n % 8] for n in rows]),
        "large": pa.array([TEXTS[n % 5] for n in rows], pa.large_string()),
        "view": pa.array([TEXTS[n % 8] or None for n in rows], pa.string_view()),
        "blob": pa.array([bytes([n & 255]) * 3 for n in rows], pa.binary()),
        "fixed": pa.array([bytes([n & 255]) * 3 for n in rows], pa.binary(3)),
        "named": pa.array([TEXTS[n % 3] for n in rows]).dictionary_encode(),
        "nothing": pa.nulls(len(rows)),
    }
    deep: dict[str, Any] = {
        "list": pa.array([[1, 2], None, [3]]),
        "texts": pa.array([["a", "bcd"], [], [None]], pa.list_(pa.string())),
        "pair": pa.array([[1, 2]] * 3, pa.list_(pa.int16(), 2)),
        "struct": pa.array([{"a": 1, "b": "x"}] * 3),
        "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32())),
    }
    whole = [pa.table({name: column}) for name, column in (flat | deep).items()]
    with duckdb.connect(config={"arrow_lossless_conversion": True}) as connection:
        odd = connection.sql(
            "SELECT 1::HUGEINT AS h, uuid_v4 AS u, INTERVAL 1 DAY AS i, 'a'::ENUM ('a', 'b') AS e, "
            "union_value(k := 1) AS v FROM (SELECT '0-0-0-0-0' AS uuid_v4)"
        ).to_arrow_table()
    return [*whole, pa.table(flat), pa.table(deep), odd, pa.table(flat).slice(3, 4)]


def stream_of(table: pa.Table, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


@cache
def streams() -> list[bytes]:
    return [stream_of(table, codec) for table in tables() for codec in (None, "zstd", "lz4")]


@cache
def plain_streams() -> list[bytes]:
    return [stream_of(table) for table in tables()]


@cache
def batches() -> list[bytes]:
    made = [_batch(data, records="csv", compress=one) for data in RECORDS for one in (True, False)]
    long = _batch(b"".join(RECORDS) * 20, records="csv", compress=True)
    typed = [_batch(data, records="arrow", compress=False) for data in plain_streams()]
    return [*made, long, *typed]


def _batch(data: bytes, *, records: str, compress: bool) -> bytes:
    return batch.encode(
        table="t",
        number=3,
        file="t.csv",
        columns=COLUMNS,
        first_line=2,
        offset=9,
        newlines=data.count(b"\n"),
        data=data,
        records=records,
        compress=compress,
    )


@cache
def mapped_objects() -> list[bytes]:
    return [
        mapped.encode(
            table="t",
            batch=number,
            file="t.csv",
            rows=3,
            repaired=1,
            rejects=mapped.reject_rows(mapped.Rejection(n, "few", n) for n in range(number)),
            stages={"scan_1": [table, table.slice(0, 0)], "scan_2": [table]},
            source_bytes=9,
            source_digest="ab",
            failed={"scan_3": "q.sql: no such thing"} if number % 2 else {},
        )
        for number, table in enumerate(tables())
    ]


@cache
def merged_objects() -> list[bytes]:
    members = []
    for data in mapped_objects():
        reader = mapped.open_bytes(data)
        members.append(merged.MergedMember(reader.index, reader.body))
    return [merged.encode(merged.Merged("t", 0, tuple(members[:n]))) for n in (0, 1, 5)]


@cache
def folds() -> list[bytes]:
    made = [outputs.encode_fold("fold_1", 2, [one, one.slice(0, 0)]) for one in tables()]
    return [*made, *[outputs.encode_failed_fold("fold_1", 2, "q.sql: no such thing")] * 4]


@cache
def results() -> list[bytes]:
    whose = outputs.Whose("j", "r", "q")
    made = [outputs.encode_result(whose, "A title", one) for one in tables()]
    return [*made, *[outputs.encode_failed_result(whose, "A title", "q.sql: no such thing")] * 4]


@cache
def application() -> Application:
    clean = "SELECT k, to_integer(n) AS n, sentiment(text) AS s FROM raw"
    asked = "SELECT k, sum(n) AS n, avg(s) AS s FROM t GROUP BY k ORDER BY k"
    return Application(
        "little",
        "",
        Path(),
        (Table("t", ("t.csv",), COLUMNS, clean, "t.sql"),),
        (Query("q", "", asked, "q.sql"),),
    )


@cache
def plan() -> bytes:
    moment = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    return to_json(make_plan(application(), None, {}, load_model(), moment))


@cache
def jobs() -> list[bytes]:
    request = job.Request(job.Text.of(application()))
    made = job.Job("j", "r", "me", 1.0, request, "6a", ("t",), job.raw(plan()), {"hash": "1"})
    return [job.encode(made)]


def ends() -> list[bytes]:
    return [ending.encode_end(End(2, 72, ending.digest_of_digests(["ab"])))]


def outcomes() -> list[bytes]:
    made = Outcome("failed", "q1.sql: no such thing", 1.0), Outcome("done", "", 1.0, {"q": "no"})
    return [ending.encode_outcome(one) for one in made]


def messages() -> list[bytes]:
    tasks = Task("map", "t", 7), Task("merge", "t"), Task("fold", "f", 3), Task("finish", "q")
    return [message.encode(Message("j", "r", one)) for one in tasks]


def beats() -> list[bytes]:
    pulse = Pulse("worker-1", 3, 17, pid=9, ticks=4, progress=2, memory=1 << 28)
    records = [HostRecord("worker-1", 3, 1.5, gone=False), HostRecord("medic-1", 1, 9.0, gone=True)]
    return [
        msgspec.json.encode(Heartbeat("s", pulse, records)),
        msgspec.json.encode(HeartSession("s")),
    ]


def chosen(objects: Callable[[], list[bytes]], chance: Random) -> bytes:
    return chance.choice(objects())
