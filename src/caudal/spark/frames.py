"""The outputs of a run: frames of Spark, and the small ones that the driver has received.

Rules
1. A frame of outputs is kept by Spark and computed once, by the action that collects its heads.
2. The same action collects slices of at most `near_bytes`, so small stages cost no action of their
   own. Each of them has one part, and all of them together have at most `MOST_BYTES`.
3. The driver keeps what it received in a file if it is large.
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from caudal.spark.outputs import StageOutputs
from caudal.spark.rows import (
    FOR_DRIVER,
    PART_BYTES,
    SPARK_SCHEMA,
    SliceRow,
    StreamParts,
    TaskRows,
    record_batches,
)
from caudal.spark.session import Share, SparkSide

MOST_BYTES = 32 << 20  # of slices that the driver holds
_TASKS_PER_CORE = 3  # of a map: so that cores are busy to its end
_TASK_BYTES = 128 << 20  # what such a task reads at most
_MOST_TASKS = 2_000
_ADDRESSED = ("stage", "slice", "number", "part", "payload")
_SEED = (
    "CAST(id AS INT) AS task", "'' AS stage", "0 AS slice", "CAST(0 AS BIGINT) AS number",
    "0 AS part", "CAST('' AS BINARY) AS payload",
)  # fmt: skip

Heads = dict[tuple[str, int], bytes]  # what the driver reads, by stage and number
Streams = Mapping[str, StreamParts]  # by stage


def is_small(size: int) -> bool:
    """Return whether the driver takes outputs of this size."""
    return size <= MOST_BYTES


def map_tasks(batches: int, size: int, parallelism: int) -> int:
    """Return the number of tasks that map so many batches of this size. A task costs time of its
    own, so there are no more than cores need, unless they would become long; and as many for each
    core, so that all of them are busy to the end."""
    rounds = max(_TASKS_PER_CORE, -(-size // (_TASK_BYTES * parallelism)))
    return max(1, min(rounds * parallelism, batches, _MOST_TASKS))


@dataclass
class OutputFrames:
    """The outputs of one run. `folder` is for data of the driver."""

    side: SparkSide
    folder: Path
    known: StageOutputs = field(default_factory=StageOutputs)
    _frames: list[tuple[frozenset[str], Any]] = field(default_factory=list)  # stages, their rows
    _near_bytes: int = 0

    def __post_init__(self) -> None:
        self._near = TaskRows(self.folder)
        self._collected = [self._near]

    def close(self) -> None:
        for rows in self._collected:
            rows.close()

    def near_bytes(self, slices: int) -> int:
        """Return the size up to which each of so many slices comes to the driver. A part that is
        full may have others behind it."""
        return min(PART_BYTES - 1, max(0, MOST_BYTES - self._near_bytes) // max(1, slices))

    def mapped(
        self,
        source: Any,
        function: Any,
        stages: Iterable[str],
        near_bytes: int,
        told: Share | None,
    ) -> Heads:
        """Compute the rows of a map; return what it has for the driver."""
        frame = self.side.keep(source.mapInArrow(function, SPARK_SCHEMA))
        self._frames.append((frozenset(stages), frame))
        return self.heads(frame, near_bytes, told)

    def folded(self, frame: Any, stages: Iterable[str], near_bytes: int) -> Heads:
        """Compute the rows of folds; return what they have for the driver."""
        kept = self.side.keep(frame)
        self._frames.append((frozenset(stages), kept))
        return self.heads(kept, near_bytes)

    def made_here(self, rows: Iterable[SliceRow]) -> None:
        """Keep the slices of a fold that the driver computed."""
        for batch in record_batches(row for row in rows if row.slice != FOR_DRIVER):
            self._near.add(batch)

    def heads(self, frame: Any, near_bytes: int = 0, told: Share | None = None) -> Heads:
        """Compute a frame; return what it has for the driver."""
        near = f"part = 0 AND length(payload) <= {near_bytes}"
        chosen = frame.where(f"slice = {FOR_DRIVER} OR ({near})").select(*_ADDRESSED)
        rows: pa.Table = self.side.run(chosen.toArrow, told)
        is_head = pc.equal(rows.column("slice"), FOR_DRIVER)
        slices = rows.filter(pc.invert(is_head))
        self._near.add(slices)
        self._near_bytes += slices.nbytes
        with contextlib.closing(TaskRows(self.folder)) as found:
            found.add(rows.filter(is_head))
            return found.numbered()

    def collected(self, stages: Iterable[str]) -> Streams:
        """Return these stages as streams, in their order."""
        wanted = set(stages)
        far = wanted & self.known.far
        near = {name: one for name, one in self._near.streams().items() if name in wanted - far}
        frames = [frame.select(*_ADDRESSED) for frame in self._rows_of(far)]
        if not frames:
            return near
        rows = TaskRows(self.folder)
        self._collected.append(rows)
        rows.add(self.side.run(_union(frames).toArrow))
        return {**near, **rows.streams()}

    def grouped(self, addresses: Sequence[int], stages: Iterable[str], function: Any) -> Any:
        """Return the outputs of these tasks, which read these stages, as a frame that is not
        computed yet."""
        session = self.side.session
        seeds = session.range(min(addresses), max(addresses) + 1, 1, 1).selectExpr(*_SEED)
        inputs = [
            frame.selectExpr("explode(readers) AS task", *_ADDRESSED)
            for frame in self._rows_of(stages)
        ]
        listed = ", ".join(map(str, addresses))
        rows = _union([*inputs, seeds]).where(f"task IN ({listed})")
        spread = rows.repartition(min(len(addresses), 4 * self.side.parallelism), "task")
        return spread.groupBy("task").applyInArrow(function, SPARK_SCHEMA)

    def _rows_of(self, stages: Iterable[str]) -> list[Any]:
        """Return the frames that hold these stages, without other rows."""
        wanted = frozenset(stages)
        return [
            frame.where(f"slice >= 0 AND stage IN ({_listed(held & wanted)})")
            for held, frame in self._frames
            if held & wanted
        ]


def _union(frames: Sequence[Any]) -> Any:
    return reduce(lambda one, two: one.unionAll(two), frames)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names))
