"""How many tasks a map has, and how much of its outputs the driver takes."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from caudal.spark.frames import MOST_BYTES, OutputFrames, is_light, map_tasks, union
from caudal.spark.rows import FOR_DRIVER, PART_BYTES, SliceRow
from caudal.spark.session import SparkSide

MB = 1 << 20


@pytest.mark.parametrize(
    ("batches", "size", "parallelism", "expected"),
    [
        (1, MB, 2, 1),  # not more tasks than batches
        (33, 264 * MB, 2, 6),  # three for each core
        (1000, 8000 * MB, 2, 64),  # no task reads more than 128 MiB
        (90_000, 720_000 * MB, 2, 2_000),
        (100, 780 * MB, 2, 8),  # as many for each core
        (0, 0, 2, 1),
    ],
)
def test_tasks_are_few_but_not_long(
    batches: int, size: int, parallelism: int, expected: int
) -> None:
    assert map_tasks(batches, size, parallelism) == expected


@pytest.mark.parametrize(
    ("size", "total", "expected"),
    [
        (53 * MB, 873 * MB, True),
        (0, 0, True),
        (2 * MB, 10 * MB, False),  # executors would wait
        (65 * MB, 5000 * MB, False),
    ],
)
def test_light_tables_are_a_small_part_of_all(size: int, total: int, expected: bool) -> None:
    assert is_light(size, total) is expected


def test_what_the_driver_computed_is_read_in_order(tmp_path: Path) -> None:
    frames = OutputFrames(SparkSide(None), tmp_path)
    for number in (1, 0):
        row = SliceRow([], "f", 0, number, 0, b"%d" % number)
        frames.made_here([row, row._replace(slice=FOR_DRIVER)])
        last = [part.data for part in frames.collected(["f"])["f"]]  # read between two writes
    assert last == [b"0", b"1"]
    assert frames.collected(["g"]) == {}
    frames.close()


def test_all_slices_together_have_a_bound(tmp_path: Path) -> None:
    frames = OutputFrames(SparkSide(None), tmp_path)
    assert frames.near_bytes(1000) == MOST_BYTES // 1000
    assert frames.near_bytes(0) < PART_BYTES  # a stream of this size has one part
    frames.close()


@dataclass(frozen=True)
class Nested:
    """A frame that knows its rows, and how deep Spark must go to see them."""

    rows: tuple[int, ...]
    depth: int = 0

    def unionAll(self, other: "Nested") -> "Nested":  # noqa: N802 - as Spark has it
        return Nested(self.rows + other.rows, 1 + max(self.depth, other.depth))


def test_a_union_of_many_frames_is_not_deep() -> None:
    made = union([Nested((number,)) for number in range(1000)])
    assert (made.rows, made.depth) == (tuple(range(1000)), 10)
