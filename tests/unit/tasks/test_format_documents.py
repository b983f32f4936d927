"""docs/formats/*.md quote true objects; damaged and unknown ones are refused with a clear line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from caudal.errors import FormatError, QueryError
from caudal.formats import batch, document, frame, job, mapped, merged, message, outcomes, outputs
from caudal.formats.keys import Message, Task
from caudal.formats.outcomes import End, Outcome
from caudal.formats.outputs import Whose
from caudal.model import Query, Table

DOCS = Path(__file__).parents[3] / "docs" / "formats"
ROWS = pa.table({"title": ["uno"], "score": [1]})

BATCH = batch.encode(
    table="books",
    number=7,
    file="books_data.csv",
    columns=("Title", "authors"),
    first_line=812,
    offset=40_960,
    newlines=2,
    data=b"Dune,Frank Herbert\nEmma,Jane Austen\n",
)
MERGED = merged.encode(
    merged.Merged(
        "books",
        256,
        (
            merged.MergedMember(
                mapped.Index(
                    table="books",
                    batch=256,
                    file="books_data.csv",
                    rows=2,
                    repaired=0,
                    rejects=mapped.Span(0, 376, 0, "d5"),
                    stages={},
                    source_bytes=36,
                    source_digest="ab",
                ),
                212,
            ),
        ),
    )
)
FOLD = outputs.encode_fold("fold_1", 3, [ROWS, ROWS.slice(0, 0)])
FAILED_FOLD = outputs.encode_failed_fold("fold_1", 3, "q1.sql: no such thing")
JOB = job.Job(
    id="0123456789abcdef0123456789abcdef",
    run="fedcba9876543210fedcba9876543210",
    owner="analysts",
    created=1_700_000_000.0,
    request=job.Request(
        job.Text(
            "little",
            "One table",
            (Table("t", ("t.csv",), ("k",), "SELECT k FROM raw", "tables/t.sql"),),
            (Query("q1", "All", "SELECT k FROM t ORDER BY k", "queries/q1.sql"),),
        )
    ),
    request_digest="6a",
    tables=("t",),
    plan=job.raw(b'{"plan":{}}'),
    versions={"caudal": "0.1", "hash": "1"},
)
RESULT = outputs.encode_result(Whose(JOB.id, JOB.run, "q1"), "Titles and scores", ROWS)
FAILED_RESULT = outputs.encode_failed_result(
    Whose(JOB.id, JOB.run, "q1"), "Titles and scores", "q1.sql: no such thing"
)
END = outcomes.encode_end(End(2, 72, outcomes.digest_of_digests(["ab", "cd"])))
OUTCOME = outcomes.encode_outcome(Outcome("failed", "q1.sql: no such thing", 1_700_000_000.0))
DONE = outcomes.encode_outcome(
    Outcome("done", "", 1_700_000_000.0, {"q1": "q1.sql: no such thing"})
)
MESSAGE = message.encode(Message(JOB.id, JOB.run, Task("map", "books", 7)))


def index_of(data: bytes) -> str:
    length = int.from_bytes(data[8:12], "little")
    return data[frame.HEAD_BYTES : frame.HEAD_BYTES + length].decode()


def head_of(data: bytes) -> str:
    return data[: frame.HEAD_BYTES].hex(" ", 4)


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ("job.md", [job.encode(JOB).decode()]),
        ("end.md", [END.decode()]),
        ("outcome.md", [OUTCOME.decode(), DONE.decode()]),
        ("messages.md", [MESSAGE.decode()]),
        ("batch.md", [head_of(BATCH), index_of(BATCH)]),
        ("merged.md", [head_of(MERGED), index_of(MERGED)]),
        ("fold.md", [head_of(FOLD), index_of(FOLD), index_of(FAILED_FOLD)]),
        ("result.md", [head_of(RESULT), index_of(RESULT), index_of(FAILED_RESULT)]),
    ],
)
def test_the_documents_show_true_objects(name: str, quoted: list[str]) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    for one in quoted:
        assert one in text, one


def test_what_was_written_is_read() -> None:
    assert job.decode(job.encode(JOB), "job.json") == JOB
    assert outcomes.decode_end(END, "end").batches == 2
    assert outcomes.decode_outcome(OUTCOME, "outcome").state == "failed"
    assert message.decode(MESSAGE).task == Task("map", "books", 7)
    assert batch.decode(BATCH, "batch")[1] == b"Dune,Frank Herbert\nEmma,Jane Austen\n"
    assert merged.decode(MERGED, "merged").end == 257
    assert outputs.decode_fold(frame.of_bytes(FOLD), "fold")[0].partition == 3
    assert outputs.decode_result(RESULT, "result")[1].equals(ROWS)


def fold_of(data: bytes) -> tuple[outputs.Folded, list[bytes]]:
    read = frame.of_bytes(data)
    index, body = outputs.decode_fold(read, "k")
    slices = index.stage("k")
    spans = [slices.empty, slices.slices[0]]
    return index, [mapped.read_stream(read, body, span, "k") for span in spans]


def bare_result(data: bytes) -> outputs.ResultHeader:
    head = frame.read_head(frame.of_bytes(data), outputs.RESULT_MAGIC, "k")
    return outputs.describe_result(head, "k")


_REASONS: dict[type, str] = {
    Outcome: "failed",
    outputs.Folded: "error",
    outputs.ResultHeader: "error",
    mapped.Index: "failed",
}

READERS: list[tuple[bytes, Callable[[bytes], Any]]] = [
    (job.encode(JOB), lambda data: job.decode(data, "k")),
    (END, lambda data: outcomes.decode_end(data, "k")),
    (OUTCOME, lambda data: outcomes.decode_outcome(data, "k")),
    (BATCH, lambda data: batch.decode(data, "k")),
    (MERGED, lambda data: merged.decode(data, "k")),
    (FOLD, lambda data: fold_of(data)),
    (RESULT, lambda data: outputs.decode_result(data, "k")),
]


@pytest.mark.parametrize(("data", "read"), READERS)
def test_every_flipped_bit_is_noticed(data: bytes, read: Callable[[bytes], Any]) -> None:
    for place in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[place // 8] ^= 1 << place % 8
        with pytest.raises(FormatError, match="k"):
            read(bytes(damaged))


@pytest.mark.parametrize(("data", "read"), READERS)
def test_truncated_objects_are_refused(data: bytes, read: Callable[[bytes], Any]) -> None:
    for length in (0, 5, 20, len(data) // 2, len(data) - 1):
        with pytest.raises(FormatError):
            read(data[:length])


def test_objects_of_a_query_that_failed_say_why() -> None:
    with pytest.raises(QueryError, match=r"^q1\.sql: no such thing$"):
        fold_of(FAILED_FOLD)
    with pytest.raises(QueryError, match=r"^q1\.sql: no such thing$"):
        outputs.decode_result(FAILED_RESULT, "result")
    assert outcomes.decode_outcome(DONE, "outcome").failed == {"q1": "q1.sql: no such thing"}


@pytest.mark.parametrize(("good", "read"), [(FAILED_FOLD, fold_of), (FAILED_RESULT, bare_result)])
def test_every_flipped_bit_of_a_reason_is_noticed(
    good: bytes, read: Callable[[bytes], Any]
) -> None:
    for place in range(8 * len(good)):
        damaged = bytearray(good)
        damaged[place // 8] ^= 1 << place % 8
        with pytest.raises(FormatError, match="k"):
            read(bytes(damaged))


def test_an_object_with_neither_rows_nor_a_reason_or_with_both_is_refused() -> None:
    neither = frame.encode(outputs.FOLD_MAGIC, outputs.Folded("fold_1", 3))
    with pytest.raises(FormatError, match="neither slices nor the reason"):
        fold_of(neither)
    nothing = frame.encode(outputs.RESULT_MAGIC, outputs.ResultHeader("q1", "", job="j", run="r"))
    with pytest.raises(FormatError, match="does not match its digest"):
        outputs.decode_result(nothing, "k")
    head = frame.read_head(frame.of_bytes(RESULT), outputs.RESULT_MAGIC, "k")
    index = msgspec.structs.replace(outputs.describe_result(head, "k"), error="no such thing")
    both = frame.encode(outputs.RESULT_MAGIC, index) + RESULT[len(head) :]
    with pytest.raises(FormatError, match="holds both rows and an error"):
        outputs.decode_result(both, "k")


def test_a_reason_is_cut_where_it_is_written_and_refused_where_it_is_longer() -> None:
    long = outputs.encode_failed_fold("fold_1", 3, "x" * 10_000)
    with pytest.raises(QueryError, match=f"^x{{{frame.MOST_REASON}}}$"):
        fold_of(long)
    longer = outputs.Folded("fold_1", 3, error="x" * (frame.MOST_REASON + 1))
    with pytest.raises(FormatError, match="k"):
        fold_of(frame.encode(outputs.FOLD_MAGIC, longer))


def test_objects_from_before_reasons_are_read() -> None:
    """The bytes of an index that was written before it could say why."""
    for text, kind in (
        (b'{"state":"done","reason":"","at":1.0}', Outcome),
        (b'{"fold":"f","partition":0,"slices":{"empty":[0,8,0,"d"],"slices":[[8,0,0,""]]}}',
         outputs.Folded),
        (b'{"query":"q","title":"","rows":[0,8,1,"d"],"job":"j","run":"r"}', outputs.ResultHeader),
        (b'{"table":"t","batch":0,"file":"f","rows":0,"repaired":0,"rejects":[0,8,0,"d"],'
         b'"stages":{}}', mapped.Index),
    ):  # fmt: skip
        assert not getattr(msgspec.json.decode(text, type=kind), _REASONS[kind])


def test_a_result_with_more_behind_it_is_refused() -> None:
    with pytest.raises(FormatError, match=f"it has {len(RESULT) + 1} bytes"):
        outputs.decode_result(RESULT + b"x", "k")


def test_other_kinds_and_later_formats_are_named() -> None:
    with pytest.raises(FormatError, match="is a document of kind 'end', not 'outcome'"):
        outcomes.decode_outcome(END, "k")
    with pytest.raises(FormatError, match="has format 9, this Caudal reads 1"):
        outcomes.decode_end(document.encode("end", 9, {}), "k")
    with pytest.raises(FormatError, match="k is not a batch"):
        batch.decode(RESULT, "k")
    with pytest.raises(FormatError, match="has format 2, this Caudal reads 1"):
        batch.decode(b"CAUDALB2" + BATCH[8:], "k")
    with pytest.raises(FormatError, match="has format 4, this Caudal reads 1"):
        message.decode(MESSAGE.replace(b'"format":1', b'"format":4'))
    with pytest.raises(FormatError, match="not a task message"):
        message.decode(b"{}")


def test_a_batch_is_compressed_only_when_that_pays() -> None:
    def of(data: bytes) -> bytes:
        return batch.encode(
            table="t", number=0, file="t.csv", columns=("k",), first_line=2, offset=2, newlines=1,
            data=data,
        )  # fmt: skip

    repeated = b"again and again\n" * 500
    assert len(of(repeated)) < 1000
    assert batch.decode(of(repeated), "k")[1] == repeated
    assert batch.describe(frame.of_bytes(of(b"x\n")), "k").codec == "none"
    assert batch.decode(of(b""), "k")[1] == b""
