"""Parts of streams come back as whole streams, in order, however they arrive."""

import random
from pathlib import Path

import pyarrow as pa
import pytest

from caudal.errors import FormatError
from caudal.spark.rows import PART_BYTES, SliceRow, TaskRows, driver_rows, record_batches

LARGE = bytes(range(256)) * (PART_BYTES // 100)


def rows() -> list[SliceRow]:
    found = [SliceRow([1, 2], "s", place, number, 0, f"{number} {place}".encode())
             for number in range(4) for place in range(3)]  # fmt: skip
    return [*found, *(row._replace(slice=0, stage="t") for row in driver_rows("t", 7, LARGE))]


@pytest.mark.parametrize("most_bytes", [10, 1 << 30])
def test_streams_do_not_depend_on_the_order_of_rows(most_bytes: int, tmp_path: Path) -> None:
    for seed in range(5):
        given = rows()
        random.Random(seed).shuffle(given)
        found = TaskRows(tmp_path, most_bytes)
        for batch in record_batches(given):
            found.add(batch)
        streams = found.streams()
        expected = [f"{number} {place}".encode() for number in range(4) for place in range(3)]
        assert [part.data for part in streams["s"]] == expected
        assert [part.data for part in streams["s"]] == expected  # they can be read again
        assert [part.data for part in streams["t"]] == [LARGE]
        assert len(streams["s"]) == 12
        found.close()


def test_parts_are_small_and_batches_bounded() -> None:
    given = rows()
    assert max(len(row.payload) for row in given) == PART_BYTES
    batches = list(record_batches(given * 3))
    assert len(batches) > 1
    assert sum(batch.num_rows for batch in batches) == 3 * len(given)


@pytest.mark.parametrize("wrong", ["lost", "twice"])
def test_a_stream_that_is_not_whole_is_refused(wrong: str) -> None:
    parts = list(driver_rows("t", 7, LARGE))
    given = parts[:1] + parts[2:] if wrong == "lost" else [*parts, parts[1]]
    found = TaskRows()
    for batch in record_batches(given):
        found.add(batch)
    with pytest.raises(FormatError, match="did not arrive whole"):
        found.streams()
    found.close()


def test_a_table_is_added_like_its_batches() -> None:
    whole = pa.Table.from_batches(record_batches(rows()))
    found = TaskRows()
    found.add(whole)
    assert len(found.streams()["s"]) == 12
    found.close()
