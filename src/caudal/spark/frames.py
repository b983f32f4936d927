"""The outputs of a run: frames of Spark, and the small ones that the driver has received.

Rules
1. A frame of outputs is kept by Spark and computed once, by the action that collects its heads.
2. The same action collects slices of at most `near_bytes`, so small stages cost no action of their
   own. Each of them has one part, and all of them together have at most `MOST_BYTES`.
3. The driver keeps what it received in a file if it is large.
4. Spark is given what the driver mapped when a task on Spark reads it.
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from caudal.spark.outputs import StageOutputs
from caudal.spark.rows import (
    FOR_DRIVER,
    PART_BYTES,
    SCHEMA,
    SPARK_SCHEMA,
    SliceRow,
    StreamParts,
    TaskRows,
    record_batches,
)
from caudal.spark.session import Share, SparkSide

MOST_BYTES = 32 << 20  # of slices that the driver holds
LIGHT_BYTES = 64 << 20  # of a table that the driver maps
_LIGHT_SHARE = 10  # it is at most this part of all tables
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


def is_light(size: int, total: int) -> bool:
    """Return whether the driver maps a table of this size, of so many bytes in all tables: an
    action of Spark takes longer. A small part of all files is a small part of all work."""
    return size <= min(LIGHT_BYTES, total // _LIGHT_SHARE)


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
    _made: list[tuple[frozenset[str], pa.Table]] = field(default_factory=list)  # not given to Spark
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

    def mapped_here(self, rows: Iterable[SliceRow]) -> Heads:
        """Keep the rows of a map that the driver computed; return what they have for the driver."""
        made = pa.Table.from_batches(record_batches(rows), SCHEMA)
        heads, slices = _heads_and_slices(made)
        self._near.add(slices)
        self._made.append((frozenset(slices.column("stage").to_pylist()), slices))
        return self._numbered(heads)

    def made_here(self, rows: Iterable[SliceRow]) -> None:
        """Keep the slices of a fold that the driver computed."""
        for batch in record_batches(row for row in rows if row.slice != FOR_DRIVER):
            self._near.add(batch)

    def heads(self, frame: Any, near_bytes: int = 0, told: Share | None = None) -> Heads:
        """Compute a frame; return what it has for the driver."""
        near = f"part = 0 AND length(payload) <= {near_bytes}"
        chosen = frame.where(f"slice = {FOR_DRIVER} OR ({near})").select(*_ADDRESSED)
        heads, slices = _heads_and_slices(self.side.run(chosen.toArrow, told))
        self._near.add(slices)
        self._near_bytes += slices.nbytes
        return self._numbered(heads)

    def _numbered(self, heads: pa.Table) -> Heads:
        with contextlib.closing(TaskRows(self.folder)) as found:
            found.add(heads)
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
        rows.add(self.side.run(union(frames).toArrow))
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
        rows = union([*inputs, seeds]).where(f"task IN ({listed})")
        spread = rows.repartition(len(addresses), "task")
        return spread.groupBy("task").applyInArrow(function, SPARK_SCHEMA)

    def _rows_of(self, stages: Iterable[str]) -> list[Any]:
        """Return the frames that hold these stages, without other rows."""
        wanted = frozenset(stages)
        self._give(wanted)
        return [
            frame.where(f"slice >= 0 AND stage IN ({_listed(held & wanted)})")
            for held, frame in self._frames
            if held & wanted
        ]

    def _give(self, wanted: frozenset[str]) -> None:
        """Give Spark what the driver mapped of these stages."""
        given = [one for one in self._made if one[0] & wanted]
        if given:
            self._made = [one for one in self._made if not one[0] & wanted]
            rows = pa.concat_tables(slices for _, slices in given)
            held = frozenset[str]().union(*(stages for stages, _ in given))
            self._frames.append(
                (held, self.side.run(lambda: self.side.session.createDataFrame(rows)))
            )


def _heads_and_slices(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    is_head = pc.equal(rows.column("slice"), FOR_DRIVER)
    return rows.filter(is_head), rows.filter(pc.invert(is_head))


def union(frames: Sequence[Any]) -> Any:
    """Return all rows, as a tree that is not deep: Spark walks through it by recursion."""
    if len(frames) == 1:
        return frames[0]
    middle = len(frames) // 2
    return union(frames[:middle]).unionAll(union(frames[middle:]))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names))
