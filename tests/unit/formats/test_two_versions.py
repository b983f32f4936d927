"""What a process does with something of a newer version: ignore a field, or refuse by number."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from caudal.client.results import every_reject, rejects_of
from caudal.errors import FormatError
from caudal.formats import batch, document, frame, mapped, merged, message, outcomes, outputs
from caudal.formats.keys import REJECTS, Message, Task
from caudal.formats.medic_status import StatusReply
from caudal.formats.replies import JobStatus
from caudal.medic.talk import StartOrder
from caudal.process.pulse import Pulse

END: dict[str, Any] = {"batches": 2, "bytes": 72, "digest": "ab"}
BATCH = batch.encode(
    table="t", number=0, file="t.csv", columns=("k",),
    first_line=2, offset=2, newlines=1, data=b"a\n",
)  # fmt: skip
FRAMES: dict[bytes, Callable[[bytes], object]] = {
    batch.MAGIC: lambda data: batch.decode(data, "K"),
    mapped.MAGIC: lambda data: mapped.open_bytes(data, "K"),
    merged.MAGIC: lambda data: merged.decode(data, "K"),
    outputs.FOLD_MAGIC: lambda data: outputs.decode_fold(frame.of_bytes(data), "K"),
}


def test_a_document_with_a_new_field_is_read() -> None:
    data = document.encode("end", 1, {**END, "added_later": [1, {"deep": True}]})
    assert outcomes.decode_end(data, "K") == outcomes.End(**END)


def test_a_document_of_a_newer_format_is_refused_by_number() -> None:
    with pytest.raises(FormatError, match="K has format 2, this Caudal reads 1"):
        outcomes.decode_end(document.encode("end", 2, END), "K")


def test_an_index_with_a_new_field_is_read() -> None:
    head = frame.read_head(frame.of_bytes(BATCH), batch.MAGIC, "K")
    index = json.loads(head[frame.HEAD_BYTES :])
    data = frame.encode(batch.MAGIC, {**index, "added_later": "x"}) + BATCH[len(head) :]
    assert batch.decode(data, "K")[1] == batch.decode(BATCH, "K")[1]


@pytest.mark.parametrize("magic", FRAMES, ids=lambda one: one.decode())
def test_a_frame_of_a_newer_format_is_refused_by_number(magic: bytes) -> None:
    number = int(chr(magic[-1]))
    newer = magic[:-1] + b"%d" % (number + 1)
    with pytest.raises(FormatError, match=f"format {number + 1}, this Caudal reads {number}"):
        FRAMES[magic](frame.encode(newer, {}))


def test_a_message_with_a_new_field_is_read_and_a_newer_one_refused() -> None:
    sent = Message("j", "r", Task("map", "t", 3))
    content = json.loads(message.encode(sent))
    assert message.decode(json.dumps({**content, "added_later": 1}).encode()) == sent
    with pytest.raises(FormatError, match="format 2, this Caudal reads 1"):
        message.decode(json.dumps({**content, "format": 2}).encode())


@pytest.mark.parametrize(
    "sent",
    [
        Pulse("worker-1", 1, 2, detail="map t 1"),
        StatusReply("medic-1", "leading", 1, "medic-1", []),
        StartOrder(name="worker-1", dead=3),
        JobStatus("r", None, {}, {}, ()),
    ],
    ids=lambda one: type(one).__name__,
)
def test_words_between_processes_may_have_new_fields(sent: Any) -> None:
    content = json.loads(msgspec.json.encode(sent))
    newer = json.dumps({**content, "added_later": {"deep": [1]}}).encode()
    assert msgspec.json.decode(newer, type=type(sent)) == sent


class IndexBefore(msgspec.Struct, frozen=True):
    """What the previous version reads of a mapped object's index."""

    table: str
    batch: int
    file: str
    rows: int
    repaired: int
    rejects: mapped.Span
    stages: dict[str, mapped.StageIndex]


class ResultBefore(msgspec.Struct, frozen=True):
    """What the previous version reads of a result's index."""

    query: str
    title: str
    rows: mapped.Span
    job: str = ""
    run: str = ""
    error: str = ""


def mapped_with(records: dict[int, str]) -> bytes:
    return mapped.encode(
        table="t", batch=0, file="t.csv", rows=1, repaired=0,
        rejects=mapped.reject_rows([mapped.Rejection(3, "wrong")]),
        stages={"scan_1": [pa.table({"k": [7]})]}, records=records,
    )  # fmt: skip


def test_the_previous_version_reads_a_mapped_object_with_records() -> None:
    data = mapped_with({3: "a,b,c"})
    index, body = frame.decode(frame.of_bytes(data), mapped.MAGIC, IndexBefore, "K")
    read = frame.of_bytes(data)
    rejects = mapped.checked_rows(read, body, index.rejects, "K")
    assert rejects.schema == mapped.REJECTS_SCHEMA
    assert mapped.rejections(rejects, "K") == [(3, "wrong", 1)]
    (span,) = index.stages["scan_1"].slices
    assert mapped.checked_rows(read, body, span, "K").to_pydict() == {"k": [7]}


def test_a_merge_of_the_previous_version_loses_only_the_records() -> None:
    found = mapped.open_bytes(mapped_with({3: "a,b,c"}))
    assert found.records() == {3: "a,b,c"}
    index = msgspec.json.decode(msgspec.json.encode(found.index), type=IndexBefore)
    group = {"table": "t", "first": 0, "members": [{"index": index, "body": found.body}]}
    (member,) = merged.decode(frame.encode(merged.MAGIC, group), "K").members
    assert member.index.reported == (found.index.rejects,)


def test_a_mapped_object_without_records_is_read() -> None:
    data = mapped_with({})
    head = frame.read_head(frame.of_bytes(data), mapped.MAGIC, "K")
    assert b"records" not in head
    found = mapped.open_bytes(data)
    assert (found.records(), found.rejects()) == ({}, [(3, "wrong", 1)])


def report_with(*records: outputs.PlaceRecord) -> bytes:
    rows = pa.table([["t"], ["wrong"], [1], [[{"file": "t.csv", "line": 3}]]], outputs.REPORT.names)
    whose = outputs.Whose("j", "r", REJECTS)
    return outputs.encode_result(whose, "Rejected rows", rows.cast(outputs.REPORT), records)


def test_the_previous_version_reads_a_report_with_records() -> None:
    data = report_with(outputs.PlaceRecord(0, 0, "a,b,c"))
    index, body = frame.decode(frame.of_bytes(data), outputs.RESULT_MAGIC, ResultBefore, "K")
    assert body + index.rows.length == len(data), "nothing follows the rows"
    rows = mapped.checked_rows(frame.of_bytes(data), body, index.rows, "K")
    assert rows.schema == outputs.REPORT
    assert [one.first for one in rejects_of(data)] == [[("t.csv", 3)]]
    assert [one.line for one in every_reject(data, ["t"])] == [3]


def test_a_report_without_records_is_read() -> None:
    head = frame.read_head(frame.of_bytes(report_with()), outputs.RESULT_MAGIC, "K")
    assert b"records" not in head
    assert outputs.describe_result(head, "K").records == ()
