"""Batches that are small on their way and huge where they are read: only their own job fails.

Each in a process of its own, bounded as a worker is; afterwards that process maps an honest batch.
"""

import subprocess
import sys

import pytest

SCRIPT = """
import sys
import msgspec, numpy as np, pyarrow as pa
from caudal.formats.keys import Task
from caudal.duck.containment import held_bytes, memory_bound
from caudal.worker.suspects import SuspectLimits
from caudal.errors import CaudalError
from caudal.formats import batch, mapped
from caudal.formats.job import Job, Options, Request, Text
from caudal.model import Query, Table
from caudal.worker.compute import LocalCompute
from caudal.jobs.interfaces import InputPart
from caudal.worker.suspect_tasks import Suspects
from caudal.worker.settings import WorkerSettings
from pathlib import Path
from tests.harness.peak_memory import peak_mib

settings = WorkerSettings("w")
sql = "SELECT a, CASE WHEN a IS NULL THEN repeat('no value ', 3) END AS reject FROM raw"
text = Text("x", "", (Table("t", ("t.csv",), ("a", "b"), sql, "t.sql"),),
            (Query("q", "", "SELECT a, count(*) AS n FROM t GROUP BY a", "q.sql"),))
compute = LocalCompute(settings.limits(Path(sys.argv[2])),
                       Suspects(settings.suspect_limits(), Path(sys.argv[2])), confirms=True)

def mapped_rows(data, records="csv", newlines=0):
    whole = batch.encode(table="t", number=0, file="t.csv", columns=("a", "b"), first_line=2,
                         offset=0, newlines=newlines, data=data, records=records)
    print(len(whole) < 200_000, end=" ")
    try:
        found = mapped.open_bytes(compute.run(job, Task("map", "t"), {"t": [InputPart(whole)]}, 1))
    except CaudalError as error:
        return f"{type(error).__name__}: {error}"
    return found.index.rows, sum(one.rows for one in found.rejects())

with memory_bound(settings.memory_bytes, tasks=True):
    request = Request(text, options=Options(partitions=2))
    planned = compute.plan(request, 0.0)
    job = Job("j", "r", "", 0.0, request, "", planned.tables, msgspec.Raw(planned.plan), {})
    exec(sys.argv[1])
    print(mapped_rows(b"x,1\\ny,2\\n"))
    compute.relieve()
    print(held_bytes() < settings.idle_bytes(200 << 20), peak_mib() < 700 + 128 + 250)
compute.close()
"""

STREAM = """
def stream(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()
"""
TOO_MUCH = "CondemnedError: map t 0: the task needs more than 668 MiB of memory"
HOSTILE = {
    "quarter of a gigabyte of rows": (r'print(mapped_rows(b"a,b\n" * 60_000_000))', TOO_MUCH),
    "quarter of a gigabyte of commas": (r'print(mapped_rows(b",\n" * 120_000_000))', TOO_MUCH),
    "millions of damaged lines": (r'print(mapped_rows(b"x\n" * 8_000_000))', "(0, 8000000)"),
    "millions of rejected rows": (r'print(mapped_rows(b",1\n" * 2_000_000))', "(0, 2000000)"),
    "a stream of nothing but nulls": (
        STREAM + 'table = pa.table({"a": pa.nulls(1 << 30), "b": pa.nulls(1 << 30)})\n'
        'print(mapped_rows(stream(table), "arrow"))',
        "DataError: t.csv: batch 0 of t claims 1073741824 rows: at most 1048576 are taken",
    ),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("hostile", "told"), HOSTILE.values(), ids=HOSTILE)
def test_only_its_own_job_fails(hostile: str, told: str, tmp_path: object) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, hostile, str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [f"True {told}", "True (2, 0)", "True True"]
