"""Waves of batches: what travels, and what executors read themselves."""

import errno
import gzip
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from caudal.application import find_application
from caudal.duck.job_plan import make_plan
from caudal.errors import DataError, UnreadableError
from caudal.files.batches import CutNote, cut_files
from caudal.files.inputs import InputFile
from caudal.files.places import LocalPlace, read_range
from caudal.formats import batch, frame
from caudal.jobs.plan import TableMap
from caudal.kernels.sentiment import load_model
from caudal.run_options import SparkInputs
from caudal.spark import inputs
from caudal.spark.inputs import Batching, FileInputs, cut_waves
from caudal.spark.reach import reachable_files

HEADER = "userId,movieId,rating,timestamp\n"
ROWS = "".join(f"{n},{n % 7},3.5,1\n" for n in range(2000))


@pytest.fixture(scope="module")
def ratings() -> TableMap:
    plan = make_plan(find_application("movies"), None, {}, load_model("lexicon"))
    return plan.table("ratings")


@pytest.fixture
def files(tmp_path: Path) -> list[InputFile]:
    (tmp_path / "a.csv").write_text(HEADER + ROWS)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress((HEADER + ROWS).encode()))
    return [InputFile(LocalPlace(tmp_path / name)) for name in ("a.csv", "b.csv.gz")]


def test_only_files_with_ranges_can_be_read_by_executors(files: list[InputFile]) -> None:
    plain = frozenset({files[0].name})
    assert reachable_files(files, SparkInputs.SHARED, is_local=False) == plain
    assert reachable_files(files, SparkInputs.AUTO, is_local=True) == plain
    assert reachable_files(files, SparkInputs.AUTO, is_local=False) == frozenset()
    assert reachable_files(files, SparkInputs.SENT, is_local=True) == frozenset()


def test_a_file_that_its_name_does_not_find_again_travels(tmp_path: Path) -> None:
    """Standard input, a pipe, a name that is not UTF-8, and one that looks like such a name."""
    escaped = tmp_path / r"c\xff.csv"
    paths = [tmp_path / "a.csv", Path(os.fsdecode(bytes(tmp_path / "c") + b"\xff.csv")), escaped]
    for path in paths:
        path.write_text(HEADER + ROWS)
    copied = InputFile(LocalPlace(paths[0], "standard input"))
    odd, looks_odd = (InputFile(LocalPlace(path)) for path in paths[1:])
    assert odd.name == looks_odd.name
    for how in (SparkInputs.AUTO, SparkInputs.SHARED):
        assert reachable_files([copied, odd, looks_odd], how, is_local=True) == frozenset()
    assert reachable_files([looks_odd], how, is_local=True) == frozenset({looks_odd.name})
    assert [file.is_plain for file in (copied, odd, looks_odd)] == [False, False, True]


def test_heads_and_whole_batches_are_separate_waves(
    files: list[InputFile], ratings: TableMap
) -> None:
    notes: list[CutNote] = []
    shared = frozenset({files[0].name})
    waves = list(cut_waves(ratings, files, 8 << 10, shared, notes))
    assert [wave.whole for wave in waves] == [False, True]
    numbers = [number for wave in waves for number in wave.batches]
    assert numbers == list(range(len(notes)))
    assert len(notes) > 6
    text = b""
    for data in waves[0].batches.values():
        index = batch.describe(frame.of_bytes(data), "a head")
        found = bytearray(index.bytes)
        count = read_range(str(files[0].place.path), index.offset, memoryview(found))
        assert count == index.bytes
        text += found
    assert text.decode() == ROWS
    sent = [batch.decode(data, "a batch")[1] for data in waves[1].batches.values()]
    assert b"".join(sent).decode() == ROWS


def test_a_wave_of_whole_batches_is_bounded(
    files: list[InputFile], ratings: TableMap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "_WAVE_BYTES", 1 << 10)
    waves = list(cut_waves(ratings, files[1:], 8 << 10, frozenset(), []))
    assert len(waves) > 1
    assert [len(wave.batches) for wave in waves] == [1] * len(waves)
    batches = list(batch_payloads(ratings, files[1:]))
    rows = [tuple(row.values()) for wave in waves for row in wave.rows().to_pylist()]
    assert rows == list(enumerate(batches))


def batch_payloads(table: TableMap, files: list[InputFile]) -> Iterator[bytes]:
    """Yield the batches of files that travel, in their order."""
    return cut_files("ratings", files, 8 << 10, columns=table.cleaning.wanted.columns)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(DataError, match="cannot read /no/such/file"):
        read_range("/no/such/file", 0, memoryview(bytearray(1)))


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.EIO, UnreadableError), (errno.ESTALE, UnreadableError), (errno.EACCES, DataError)],
)
def test_an_error_that_may_pass_is_told_from_one_that_lasts(
    number: int, kind: type[DataError], files: list[InputFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "open", failing)
    with pytest.raises(DataError, match=os.strerror(number)) as raised:
        read_range(str(files[0].place.path), 0, memoryview(bytearray(1)))
    assert type(raised.value) is kind


def test_a_file_that_became_shorter_is_read_to_its_end(files: list[InputFile]) -> None:
    whole, found = len(HEADER + ROWS), bytearray(16)
    count = read_range(str(files[0].place.path), whole - 6, memoryview(found))
    assert (count, bytes(found)) == (6, (HEADER + ROWS)[-6:].encode() + bytes(10))


MB = 1 << 20


@pytest.mark.parametrize(
    ("batching", "size", "expected"),
    [
        (Batching(None, 2), 10 * MB, 8 * MB),  # not smaller than elsewhere
        (Batching(None, 2), 96 * MB, 12 * MB),  # four for each core
        (Batching(None, 2), 10_000 * MB, 24 * MB),
        (Batching(None, 64), 1_000 * MB, 8 * MB),  # enough for many cores
        (Batching(None, 2, memory_bytes=512 * MB), 10_000 * MB, 16 * MB),
        (Batching(None, 2, memory_bytes=64 * MB), 10_000 * MB, 8 * MB),
        (Batching(MB, 2), 10_000 * MB, MB),  # as it was asked for
    ],
)
def test_batches_are_large_where_there_are_enough(
    batching: Batching, size: int, expected: int
) -> None:
    assert batching.batch_bytes(size) == expected


def test_batches_that_travel_are_small(files: list[InputFile], ratings: TableMap) -> None:
    assert Batching(None, 2).sent_bytes == 8 * MB
    sizes = {"ratings": files}
    one = FileInputs(sizes, frozenset({files[0].name}), Batching(8 << 10))
    assert [wave.whole for wave in one.waves(ratings, [])] == [False, True]


@pytest.mark.parametrize("chosen", [["a.csv"], ["a.csv", "b.csv.gz"]])
def test_batches_are_large_only_if_executors_read_all_files(
    chosen: list[str],
    files: list[InputFile],
    ratings: TableMap,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inputs, "USUAL_BATCH_BYTES", 1 << 10)

    def sizes(shared: frozenset[str]) -> list[int]:
        """Return the sizes of batches of the plain file."""
        notes: list[CutNote] = []
        given = {"ratings": [file for file in files if file.place.path.name in chosen]}
        list(FileInputs(given, shared, Batching()).waves(ratings, notes))
        ends = [note.reached for note in notes if note.reached <= files[0].size]
        return [end - begin for begin, end in itertools.pairwise([0, *ends])]

    sent, shared = sizes(frozenset()), sizes(frozenset({files[0].name}))
    assert max(sent) <= 1 << 10
    if chosen == ["a.csv"]:
        assert max(shared) > 4 << 10
    else:
        assert shared == sent
