"""The engine behind the compute port, in this process. Not for use by two threads at once."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from caudal.core.tasks import REJECTS, Task
from caudal.engine import mapping
from caudal.engine.functions import register_functions
from caudal.engine.sandbox import Limits, Sandbox, Types
from caudal.engine.split_plan import SplitPlan, from_json, make_plan, to_json
from caudal.engine.stages import Hashing
from caudal.formats import mapped, outputs
from caudal.formats.job import Job, Request
from caudal.kernels.hashing import partition_of
from caudal.kernels.sentiment import load_model
from caudal.model import Application, RejectedRow
from caudal.rejects import Rejects
from caudal.tasks.ports import Inputs, Part, Planned

_PLACE = pa.struct([("file", pa.string()), ("line", pa.int64())])
REPORT = pa.schema(
    [
        ("table", pa.string()),
        ("reason", pa.string()),  # null: rows that were kept, with bytes that are not UTF-8
        ("rows", pa.int64()),
        ("first", pa.list_(_PLACE)),
    ]
)


class LocalCompute:
    """Plans and runs in a sandbox of this process."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._sandboxes: dict[str, tuple[Sandbox, Sandbox]] = {}  # by sentiment model

    def close(self) -> None:
        for pair in self._sandboxes.values():
            for sandbox in pair:
                sandbox.close()

    def plan(self, request: Request, moment: float) -> Planned:
        """See the port."""
        text = request.application
        app = Application(
            name=text.name,
            title=text.title,
            folder=Path(),
            tables=text.tables,
            queries=text.queries,
            parameters=text.parameters,
            sentiment=text.sentiment,
        )
        model = load_model(text.sentiment)
        at = datetime.fromtimestamp(moment, UTC)
        split = make_plan(app, request.queries or None, request.parameters, model, at)
        return Planned(tuple(one.table.name for one in split.maps), to_json(split))

    def run(self, job: Job, task: Task, inputs: Inputs, deliveries: int) -> bytes:
        """See the port."""
        split = from_json(job.plan)
        hashing = Hashing(job.request.options.partitions, partition_of)
        sandboxes = self._pair(job.request.application.sentiment)
        if task.kind == "map":
            data, place = inputs[task.name][0].data, f"batch {task.number} of {task.name}"
            return mapping.map_batch(split, data, hashing, sandboxes[0], place)
        if task.kind == "finish" and task.name == REJECTS:
            return report(split, inputs)
        streams = {name: [part.data for part in parts] for name, parts in inputs.items()}
        if task.kind == "finish":
            return mapping.finish_query(split, task.name, streams, hashing, sandboxes)
        return mapping.fold_partition(split, task.name, task.number, streams, hashing, sandboxes[0])

    def _pair(self, name: str) -> tuple[Sandbox, Sandbox]:
        if name not in self._sandboxes:
            model = load_model(name)
            one, other = (
                Sandbox(self._limits, lambda to: register_functions(to, model), types)
                for types in (Types.LOSSLESS, Types.PLAIN)
            )
            self._sandboxes[name] = one, other
        return self._sandboxes[name]


def report(split: SplitPlan, inputs: Mapping[str, Sequence[Part]]) -> bytes:
    """The rejects report as a result."""
    rejects = Rejects()
    for one in split.maps:
        for part in inputs.get(one.table.name, ()):
            found = mapped.read_rows(part.data).to_pydict()
            rejects.add(
                RejectedRow(one.table.name, part.file, line, reason)
                for line, reason in zip(found["line"], found["reason"], strict=True)
            )
            rejects.note_repaired(one.table.name, part.repaired)
    rows: list[tuple[str, str | None, int, list[dict[str, str | int]]]] = [
        (one.table, one.reason, one.count, [{"file": f, "line": n} for f, n in one.first])
        for one in rejects
    ]
    rows += [(table, None, count, []) for table, count in rejects.repaired.items()]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
    return outputs.encode_result(REJECTS, "Rejected rows", pa.table(columns, schema=REPORT))
