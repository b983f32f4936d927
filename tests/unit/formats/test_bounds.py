"""What an index or a document claims is bounded before anyone computes with it."""

from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from caudal.errors import FormatError
from caudal.formats import batch, document, frame, job, mapped, merged, message, outcomes
from caudal.formats.digest import digest
from caudal.jobs.plan import from_json

HONEST: dict[str, Any] = {
    "table": "t", "number": 0, "file": "t.csv", "columns": ["k"], "first_line": 2, "offset": 2,
    "newlines": 1, "bytes": 2, "digest": digest(b"x\n"), "codec": "none", "records": "csv",
}  # fmt: skip
HUGE = 10**30
READERS: list[Callable[[bytes, str], Any]] = [batch.decode, batch.view, batch.check]


def batch_of(body: bytes = b"x\n", **changes: Any) -> bytes:
    return frame.encode(batch.MAGIC, HONEST | changes) + body


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("name", ["number", "first_line", "offset", "newlines", "bytes"])
@pytest.mark.parametrize("value", [-1, HUGE, 1 << 62])
def test_numbers_of_a_batch_are_bounded(
    read: Callable[[bytes, str], Any], name: str, value: int
) -> None:
    with pytest.raises(FormatError):
        read(batch_of(b"x\n", **{name: value}), "k")


@pytest.mark.parametrize("read", READERS)
def test_a_batch_unpacks_to_what_it_declares_and_no_more(
    read: Callable[[bytes, str], Any],
) -> None:
    data = b"x\n" * 1_000_000
    packed = pa.compress(data, codec="zstd", asbytes=True)
    honest = {"bytes": len(data), "digest": digest(data), "codec": "zstd"}
    assert read(batch_of(packed, **honest), "k")
    for lied in (0, 1, len(data) - 1, len(data) + 1, batch.MOST_BYTES):
        with pytest.raises(FormatError, match=r"is damaged|cannot unpack"):
            read(batch_of(packed, **honest | {"bytes": lied}), "k")
    with pytest.raises(FormatError, match="at most 268435456 are read; cut smaller batches"):
        read(batch_of(packed, **honest | {"bytes": batch.MOST_BYTES + 1}), "k")


def test_an_index_is_refused_by_its_length_before_it_is_read() -> None:
    asked: list[int] = []

    def read(offset: int, length: int) -> bytes:
        asked.append(length)
        return (batch.MAGIC + (1 << 30).to_bytes(4, "little") + bytes(32))[offset:]

    with pytest.raises(FormatError, match="an index of 1073741824 bytes: at most 4194304"):
        batch.describe(read, "k")
    assert asked == [frame.HEAD_BYTES]


NONSENSE = [
    b'{"table":' + b"[" * 200_000,
    b'{"table":"\xff\xfe"}',
    b'{"table":"t","first":' + b"9" * 10_000 + b"}",
    b"\xff" * 50,
    b"",
]


@pytest.mark.parametrize("text", NONSENSE)
def test_what_is_no_json_is_one_error(text: bytes) -> None:
    """Too deep, no UTF-8, numbers without end."""
    kinds = (
        (batch.MAGIC, batch.BatchHeader),
        (mapped.MAGIC, mapped.Index),
        (merged.MAGIC, merged.Merged),
    )
    for magic, kind in kinds:
        head = magic + len(text).to_bytes(4, "little") + digest(text).encode()
        with pytest.raises(FormatError):
            frame.decode(frame.of_bytes(head + text), magic, kind, "k")
    for read in (job.decode, outcomes.decode_end, outcomes.decode_outcome):
        for whole in (text, document.encode("end", 1, msgspec.Raw(text or b"{}"))):
            with pytest.raises(FormatError):
                read(whole, "k")
    with pytest.raises(FormatError):
        message.decode(text)
    with pytest.raises(FormatError):
        from_json(text)


@pytest.mark.parametrize(
    ("told", "lied"),
    [
        ('"group":256', '"group":0'),
        ('"group":256', '"group":-3'),
        ('"group":256', f'"group":{HUGE}'),
        ('"number":7', '"number":-1'),
        ('"number":7', f'"number":{HUGE}'),
        ('"job":"j"', '"job":"../../etc"'),
        ('"run":"r"', '"run":""'),
        ('"name":"t"', '"name":"a/b"'),
    ],
)
def test_messages_name_what_can_be(told: str, lied: str) -> None:
    text = (
        '{"job":"j","run":"r","task":{"kind":"map","name":"t","number":7},"group":256,"format":1}'
    )
    assert message.decode(text.encode()).group == 256
    assert told in text
    with pytest.raises(FormatError):
        message.decode(text.replace(told, lied).encode())


def test_slices_that_an_object_lacks_are_an_error_of_the_object() -> None:
    rows = pa.table({"a": [1]})
    data = mapped.encode(
        table="t",
        batch=0,
        file="f",
        rows=1,
        repaired=0,
        rejects=mapped.reject_rows([]),
        stages={"scan_1": [rows]},
    )
    found = mapped.open_bytes(data, "k")
    for ask in (
        lambda: found.slice("scan_2", 0),
        lambda: found.slice("scan_1", 1),
        lambda: found.slice("scan_1", -1),
        lambda: found.streams("scan_2"),
    ):
        with pytest.raises(FormatError, match="k holds no slice"):
            ask()
