"""Streams: every row once, however the stream is cut, killed and sent again."""

import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from tests.harness.shelves import ask_sales, sales_loader

from caudal.datasets.commits import open_contents
from caudal.datasets.reports import LoadReport
from caudal.datasets.shelf import Shelf
from caudal.datasets.stream_loader import SkippedPart, StreamLoader
from caudal.embedded.dataset_load import DatasetLoader
from caudal.embedded.dataset_stream import EmbeddedTarget
from caudal.errors import DataError
from caudal.store import MemoryStore

TEXT = b"id,amount,day\n" + b"".join(
    b'%d,%d.25,"2024-01-02"\n' % (n, n) if n % 7 else b"x%d,1,\n" % n for n in range(1, 60)
)
ALL = [n for n in range(1, 60) if n % 7]


class KilledError(BaseException):
    """The loader stops here."""


@dataclass
class Pieces:
    """A stream in pieces; None is a moment in which nothing came for long."""

    pieces: list[bytes | None]
    clock: list[float] = field(default_factory=lambda: [0.0])

    def read(self, timeout: float | None) -> bytes | None:
        if not self.pieces:
            return b""
        piece = self.pieces.pop(0)
        if piece is None:
            self.clock[0] += timeout or 0.0
        return piece


def cut(text: bytes, chance: random.Random) -> list[bytes | None]:
    """The text in random pieces, with pauses between some of them."""
    places = sorted(chance.sample(range(1, len(text)), 12))
    found: list[bytes | None] = []
    for start, end in zip([0, *places], [*places, len(text)], strict=True):
        found.append(text[start:end])
        if chance.random() < 0.5:
            found.append(None)
    return found


@pytest.fixture
def loader() -> Iterator[DatasetLoader]:
    with sales_loader(MemoryStore(), "memory:") as found:
        yield found


def send(
    loader: DatasetLoader, pieces: list[bytes | None], kill_after: int = -1
) -> list[LoadReport | SkippedPart]:
    """Load a stream with a new loader; it dies after so many reports."""
    reports: list[LoadReport | SkippedPart] = []
    stream = Pieces(list(pieces))

    def report(one: LoadReport | SkippedPart) -> None:
        reports.append(one)
        if len(reports) == kill_after:
            raise KilledError

    fresh = DatasetLoader(loader.app, loader.place, loader.tools)
    loading = StreamLoader(
        EmbeddedTarget(fresh), "sales", 10.0, report, clock=lambda: stream.clock[0]
    )
    with contextlib.suppress(KilledError):
        loading.load(stream)
    return reports


def ids(loader: DatasetLoader) -> list[object]:
    store = loader.tools.store
    shelf = Shelf("memory:", store, open_contents(store))
    return [row["id"] for row in ask_sales(shelf, "SELECT id FROM sales")]


@pytest.mark.parametrize("seed", range(12))
def test_a_stream_that_comes_again_is_loaded_once(seed: int, loader: DatasetLoader) -> None:
    chance = random.Random(seed)
    for _ in range(3):
        send(loader, cut(TEXT, chance), kill_after=chance.randrange(1, 4))
    send(loader, cut(TEXT, chance))
    assert ids(loader) == ALL


def test_a_pause_makes_a_version_of_whole_records(loader: DatasetLoader) -> None:
    middle = TEXT.index(b"9,9.25") + 3
    reports = send(loader, [TEXT[:middle], None, TEXT[middle:]])
    assert [one.rows for one in reports if isinstance(one, LoadReport)] == [7, len(ALL) - 7]


def test_rejected_rows_have_the_lines_of_the_stream(loader: DatasetLoader) -> None:
    send(loader, [TEXT[:200], None, TEXT[200:500], None, TEXT[500:]])
    store = loader.tools.store
    shelf = Shelf("memory:", store, open_contents(store))
    found = ask_sales(shelf, "SELECT file, line, record FROM rejects")
    assert [(row["line"], row["record"]) for row in found] == [
        (n + 1, f"x{n},1,") for n in range(7, 60, 7)
    ]
    assert {row["file"] for row in found} == {"standard input"}


def test_another_stream_is_not_taken_for_a_known_one(loader: DatasetLoader) -> None:
    send(loader, [TEXT])
    other = TEXT.replace(b"59,59.25", b"60,60.25")
    send(loader, [other])
    assert sorted(ids(loader), key=str) == sorted([*ALL, *ALL[:-1], 60], key=str)


def test_a_stream_that_goes_on_loads_only_what_is_new(loader: DatasetLoader) -> None:
    short = TEXT[: TEXT.index(b"30,")]
    send(loader, [short])
    reports = send(loader, [TEXT])
    assert [type(one) for one in reports] == [SkippedPart, LoadReport]
    assert ids(loader) == ALL


def test_a_last_record_that_grows_is_not_torn_in_two(loader: DatasetLoader) -> None:
    send(loader, [b"id,amount,day\n1,1,\n2,2"])
    send(loader, [b"id,amount,day\n1,1,\n2,25,\n"])
    assert ids(loader)[-2:] == [1, 2]
    store = loader.tools.store
    shelf = Shelf("memory:", store, open_contents(store))
    assert ask_sales(shelf, "SELECT count(*) AS n FROM rejects") == [{"n": 1}]


def test_a_stream_that_ends_inside_a_known_part_is_refused(loader: DatasetLoader) -> None:
    send(loader, [TEXT])
    with pytest.raises(DataError, match=r"ends within a part of .* that version 1 loaded"):
        send(loader, [TEXT[:500]])
    assert ids(loader) == ALL


def test_a_stream_without_an_end_of_its_first_line_is_refused(loader: DatasetLoader) -> None:
    stream = Pieces([b"x" * 1000] * 5)
    loading = StreamLoader(EmbeddedTarget(loader), "sales", 10.0, lambda one: None, most_bytes=2000)
    with pytest.raises(DataError, match="its first line does not end"):
        loading.load(stream)
