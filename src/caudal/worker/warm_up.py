"""Compiles all kernels that tasks need before the first task is taken.

If the package has no compiled kernels for this processor, the first use of a kernel compiles it,
which takes seconds. A task would have to wait for that, and the worker might answer heartbeats too
late.
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
    """Plan and map a table of two rows that uses every kernel, unless all are compiled already."""
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
