"""The records that a report shows: those of the file, and few, whatever a batch rejects."""

import io
import random
import time
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caudal.files import rejected_records
from caudal.files.raw_records import no_records, records_of_batch
from caudal.files.rejected import RejectedRows
from caudal.files.rejected_records import CUT, MOST_BYTES, MOST_CHARACTERS, MOST_RECORDS, PER_REASON
from caudal.formats import mapped
from caudal.kernels.csv import NO_DAMAGE, Batch, Header, cut_batches, read_batch

LONG = "ñ" * 5_000


def damaged_rows(batch: Batch) -> RejectedRows:
    """The damaged records of a batch."""
    found = read_batch(batch, batch.header.names[:1])
    raw = partial(records_of_batch, batch, found.starts, found.damaged.lines)
    made = RejectedRows.of("t", "f", found.damaged)
    return RejectedRows(made.table, made.file, made.lines, made.codes, made.reasons, raw)


def told_rows(reasons: list[str], records: list[str]) -> RejectedRows:
    """Rows that the SQL rejects, one on each line."""
    made = RejectedRows.of(
        "t", "f", NO_DAMAGE, np.arange(2, 2 + len(reasons)), pa.array(reasons, pa.string())
    )
    return RejectedRows(
        made.table, made.file, made.lines, made.codes, made.reasons,
        lambda lines: pa.array([records[line - 2] for line in lines.tolist()], pa.string()),
    )  # fmt: skip


def object_of(rows: RejectedRows) -> bytes:
    return mapped.encode(
        table="t", batch=0, file="f", rows=0, repaired=0, rejects=rows.kept(), stages={},
        records=rows.first_records(),
    )  # fmt: skip


def is_bounded(records: dict[int, str]) -> bool:
    texts = list(records.values())
    return (
        len(texts) <= MOST_RECORDS
        and all(len(one) <= MOST_CHARACTERS for one in texts)
        and sum(len(one.encode()) for one in texts) <= MOST_BYTES
    )


rejected = st.lists(
    st.tuples(
        st.sampled_from([f"reason {n}" for n in range(40)]),
        st.text(max_size=20) | st.just(LONG) | st.just("\0" * 300) | st.just("𝄞" * 300),
    ),
    max_size=300,
)


@given(rejected)
def test_records_are_bounded_and_each_is_that_of_its_line(rows: list[tuple[str, str]]) -> None:
    reasons, records = [one for one, _ in rows], [one for _, one in rows]
    found = told_rows(reasons, records).first_records()
    assert is_bounded(found)
    for line, text in found.items():
        whole = records[line - 2]
        assert text == (whole if len(whole) <= MOST_CHARACTERS else whole[:199] + CUT)


@given(st.lists(st.sampled_from("abcdef"), max_size=60))
def test_the_first_rows_of_each_reason_have_records(reasons: list[str]) -> None:
    found = told_rows(reasons, [f"record {n}" for n in range(len(reasons))]).first_records()
    for reason in set(reasons):
        places = [n for n, one in enumerate(reasons) if one == reason]
        for number, place in enumerate(places):
            assert (found.get(place + 2) == f"record {place}") == (number < PER_REASON)


def test_of_many_reasons_each_has_its_first_record_before_any_has_two() -> None:
    reasons = [f"reason {n % 50}" for n in range(500)]
    found = told_rows(reasons, ["x"] * 500).first_records()
    assert len(found) == MOST_RECORDS
    assert set(found) >= set(range(2, 52))


def test_the_index_of_a_batch_does_not_grow_with_them() -> None:
    few = mapped.open_bytes(object_of(told_rows(["a"], ["x"])))
    many = mapped.open_bytes(object_of(told_rows(["a", "b"] * 500, [LONG] * 1_000)))
    assert many.body < few.body + 20
    assert many.records() == told_rows(["a", "b"] * 500, [LONG] * 1_000).first_records()
    assert few.records() == {2: "x"}


@given(st.binary(max_size=2_000))
@settings(max_examples=200)
def test_any_bytes_are_bounded_text(data: bytes) -> None:
    batch = Batch("f", Header(("a", "b")), 0, 2, 0, 0, np.frombuffer(data, np.uint8))
    rows = damaged_rows(batch)
    found = rows.first_records()
    assert is_bounded(found)
    assert set(found) <= set(rows.lines.tolist())
    assert mapped.open_bytes(object_of(rows)).records() == found
    for line, text in found.items():
        begin = sum(len(one) for one in data.split(b"\n")[: line - 2]) + line - 2
        whole = data[begin:].decode("utf-8", "replace")
        assert whole.startswith(text.removesuffix(CUT))


_RECORDS = ["1,2", "1", "1,2,3", '"x\ny",2', '"x\n\n",","', '"x\n\ny",2,3', "z" * 900, "ñ"]


@pytest.mark.parametrize("seed", range(20))
def test_records_are_those_of_the_file_at_their_lines(seed: int) -> None:
    chance = random.Random(seed)
    records = chance.choices(_RECORDS, k=chance.randint(1, 200))
    text = "\n".join(["a,b", *records]) + chance.choice(["", "\n"])
    lines = np.cumsum([2, *(one.count("\n") + 1 for one in records)])[:-1].tolist()
    true = dict(zip(lines, map(rejected_records.shortened, records), strict=True))
    wrong = {line for line, one in zip(lines, records, strict=True) if one not in (
        "1,2", '"x\ny",2', '"x\n\n",","')}  # fmt: skip
    stream = io.BytesIO(text.encode())
    for batch in cut_batches(stream, "x", batch_bytes=chance.choice([500, 60_000])):
        rows = damaged_rows(batch)
        found = rows.first_records()
        assert found == {line: true[line] for line in found}
        assert set(found) <= wrong
        assert len(found) == sum(
            min(PER_REASON, int(np.count_nonzero(rows.codes == code))) for code in set(rows.codes)
        )


def test_bytes_that_are_no_utf_8_are_marked() -> None:
    data = np.frombuffer(b"caf\xe9\n1,2\n", np.uint8)
    rows = damaged_rows(Batch("f", Header(("a", "b")), 0, 2, 0, 0, data))
    assert rows.first_records() == {2: "caf�"}


def test_records_of_millions_of_damaged_lines_cost_little() -> None:
    data = np.frombuffer(b"x\n" * 4_000_000, np.uint8)
    rows = damaged_rows(Batch("f", Header(("a", "b")), 0, 2, 0, 0, data))
    began = time.process_time()
    assert rows.first_records() == dict.fromkeys(range(2, 7), "x")
    assert time.process_time() - began < 1


def test_where_nothing_is_rejected_no_record_is_read() -> None:
    def never(lines: object) -> pa.Array:
        raise AssertionError

    made = RejectedRows.of("t", "f", NO_DAMAGE)
    rows = RejectedRows(made.table, made.file, made.lines, made.codes, made.reasons, never)
    assert rows.first_records() == {}
    assert mapped.open_bytes(object_of(rows)).index.records is None


def test_records_that_nobody_knows_are_left_out() -> None:
    rows = told_rows(["a"], ["x"])
    unknown = RejectedRows(rows.table, rows.file, rows.lines, rows.codes, rows.reasons, no_records)
    assert unknown.first_records() == {}
