"""What a reader relies on is counted from the bytes that it reads, never from what came along."""

import numpy as np
import pytest

from caudal.errors import DataError
from caudal.kernels.csv import Batch, Header, NumberColumn, read_batch
from caudal.kernels.csv import records as records_module
from caudal.kernels.csv.records import scan_records


def batch(data: bytes, columns: tuple[str, ...], newlines: int) -> Batch:
    return Batch("f.csv", Header(columns), 0, 2, 0, newlines, np.frombuffer(data, np.uint8))


@pytest.mark.parametrize("newlines", [0, 1, -5, 10**12, -(10**12)])
@pytest.mark.parametrize("record", [b"one,1\n", b'"o""ne",1\n', b"one\n", b'one,"1\n'])
def test_a_wrong_number_of_lines_changes_nothing(newlines: int, record: bytes) -> None:
    data = record * 50_000
    told, lied = (
        read_batch(batch(data, ("a", "b"), one), ["a"], [NumberColumn("b", 0, 0)])
        for one in (50_000, newlines)
    )
    assert lied.table.equals(told.table)
    assert tuple(lied.damaged) == tuple(told.damaged)
    assert lied.table.num_rows + len(lied.damaged) == 50_000


@pytest.mark.parametrize("width", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\r", b","])
@pytest.mark.parametrize("quoted", [b"", b'"'])
def test_the_shortest_records_have_room(width: int, end: bytes, quoted: bytes) -> None:
    """As many records as so many bytes can hold, of each width and ending."""
    shortest = b"," * (width - 1) if width > 1 else b"x"
    slots = np.arange(width, dtype=np.int32)
    for count in (0, 1, 2, 63, 64, 65, 1000):
        data = quoted + b"\n".join([shortest] * count) + end
        found = scan_records(np.frombuffer(data, np.uint8), slots, final=True)
        assert len(found.starts) + len(found.damage.starts) <= count + 1


def test_room_stays_in_proportion_to_the_bytes() -> None:
    """However many columns somebody names: ten thousand times as many lines would be terabytes."""
    data = np.frombuffer(b"\n" * 4_000_000 + b"x\n" * 10, np.uint8)
    found = scan_records(data, np.arange(10_000, dtype=np.int32), final=True)
    assert len(found.damage.starts) == 10


def test_more_than_places_can_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records_module, "MAX_BATCH_BYTES", 10)
    with pytest.raises(DataError, match="11 bytes of records at once are too many"):
        scan_records(np.frombuffer(b"a" * 11, np.uint8), np.zeros(1, np.int32), final=True)


@pytest.mark.parametrize(
    "number",
    [NumberColumn("b", *one) for one in ((18, 19), (40, 2), (0, -1), (-3, 0))],
)
def test_numbers_that_the_reader_has_no_table_for_are_refused(number: NumberColumn) -> None:
    with pytest.raises(DataError, match="18 digits are the most"):
        read_batch(batch(b"one,1.5\n", ("a", "b"), 1), ["a"], [number])
