"""Parts of streams come back as whole streams, in order, however they arrive."""

import random
from pathlib import Path

import pyarrow as pa
import pytest

from caudal.errors import FormatError
from caudal.formats import mapped
from caudal.spark.routes import Routes
from caudal.spark.rows import (
    FOR_DRIVER,
    PART_BYTES,
    SliceRow,
    TaskRows,
    driver_rows,
    mapped_rows,
    record_batches,
)

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


class NoReaders(Routes):
    """Nobody reads any slice."""

    def __init__(self) -> None:
        """Without a plan."""

    def readers(self, stage: str, number: int, slices: int) -> list[int]:
        return []


@pytest.mark.parametrize("records", [{}, {3: "a,b,c"}])
def test_the_driver_gets_rejected_rows_with_their_records(records: dict[int, str]) -> None:
    data = mapped.encode(
        table="t", batch=0, file="t.csv", rows=1, repaired=0,
        rejects=mapped.reject_rows([mapped.Rejection(3, "wrong")]),
        stages={"scan_1": [pa.table({"k": [7]})]}, records=records,
    )  # fmt: skip
    (row,) = mapped_rows(data, 0, NoReaders())
    found = mapped.open_bytes(row.payload)
    assert row.slice == FOR_DRIVER
    assert (found.rejects(), found.records()) == ([(3, "wrong", 1)], records)
    assert len(row.payload) < len(data), "slices are not for the driver"
