"""Compile everything that tasks need before the first one is taken, where it must be compiled.

Where no kernels came compiled for this processor, the first use of one compiles it, for seconds; a
task that waits for that would be late, and a worker that computes while it should answer heartbeats
is no fun either.
"""

import msgspec

from caudal.formats import batch
from caudal.formats.job import Job, Options, Request, Text
from caudal.formats.keys import Task
from caudal.jobs.interfaces import InputPart
from caudal.kernels import compiled
from caudal.model import Query, Table
from caudal.worker.compute import LocalCompute

_ROWS = b"a,1,a good day,['x'],[{'name': 'y'}]\nb,2.5,\"bad \"\"luck\"\"\",[],[]\n"
_COLUMNS = ("k", "n", "line", "list", "people")
_CLEAN = """
SELECT k, TRY_CAST(n AS DOUBLE) AS n, sentiment(line) AS polarity,
    items(list) AS things, names(people) AS people
FROM raw
"""
_ASK = "SELECT k, sum(n), avg(polarity), max(things), max(people) FROM t GROUP BY k ORDER BY k"


def warm_up(compute: LocalCompute) -> None:
    """Plan and map a table of two rows that uses everything, unless all is compiled already."""
    if compiled.CODE is None:
        _use_everything(compute)


def _use_everything(compute: LocalCompute) -> None:
    text = Text(
        "warming",
        "",
        (Table("t", ("t.csv",), _COLUMNS, _CLEAN, "tables/t.sql"),),
        (Query("q", "", _ASK, "queries/q.sql"),),
    )
    request = Request(text, options=Options(partitions=2))
    planned = compute.plan(request, 0.0)
    job = Job("warming", "", "", 0.0, request, "", planned.tables, msgspec.Raw(planned.plan), {})
    data = batch.encode(
        table="t",
        number=0,
        file="t.csv",
        columns=_COLUMNS,
        first_line=2,
        offset=0,
        newlines=2,
        data=_ROWS,
    )
    compute.run(job, Task("map", "t"), {"t": [InputPart(data)]}, 1)
