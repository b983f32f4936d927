"""A client that resumes with a file whose header changed: an error, and never a mixture."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.harness.one_owner import OneOwner
from tests.unit.tasks.test_end_to_end import Place

from caudal.application import find_application
from caudal.files.batches import cut_files
from caudal.files.ordered import in_order
from caudal.formats import outputs
from caudal.formats.job import Options, Request, Text
from caudal.formats.replies import Receipt
from caudal.jobs.interfaces import ConflictError
from caudal.jobs.resumed_files import IN_TRANSIT
from caudal.jobs.upload import Uploader, UploadRequest

APP = """
title = "Pairs"
[[tables]]
name = "t"
files = ["*.csv"]
columns = ["a", "b"]
"""
ROWS, BATCH_BYTES = 40, 30  # some ten batches of a file


class KilledError(Exception):
    """The client is gone."""


@dataclass(frozen=True)
class Asked(OneOwner):
    """Notes the batches that come, and lets a client die in place of some of them."""

    lost: frozenset[int] = frozenset()
    put: list[int] = field(default_factory=list)

    def put_batch(self, job_id: str, data: bytes, *, only: bool = False) -> Receipt:
        number = number_of(data)
        if number in self.lost:
            raise KilledError
        self.put.append(number)
        return super().put_batch(job_id, data, only=only)


def number_of(data: bytes) -> int:
    from caudal.formats import batch, frame

    return batch.describe(frame.of_bytes(data), "").number


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.toml").write_text(APP)
    for room in ("tables", "queries"):
        (tmp_path / room).mkdir()
    (tmp_path / "tables" / "t.sql").write_text("SELECT a, to_integer(b) AS b FROM raw")
    (tmp_path / "queries" / "q.sql").write_text("-- Sum\nSELECT sum(b) AS n FROM t")
    return tmp_path


def order(folder: Path, *headers: str) -> UploadRequest:
    """One file for each header, with the same records whatever it is."""
    app, files = find_application(str(folder)), list[Path]()
    for number, header in enumerate(headers):
        files.append(folder / f"{number}.csv")
        records = "".join(f"{number}{row:02},{row}\n" for row in range(ROWS))
        files[-1].write_text(f"{header}\n{records}")
    request = Request(Text.of(app), options=Options(batch_bytes=BATCH_BYTES, partitions=1))
    return UploadRequest("j", request, {"t": list(cut_files("t", files, BATCH_BYTES))})


def send(asked: Asked, place: Place, order: UploadRequest, **how: Any) -> None:
    Uploader(asked, place.clock, **how).send(order)


def send_some(place: Place, order: UploadRequest, *numbers: int) -> None:
    """Only these batches arrive: the client is killed while some are on their way."""
    place.gateway.create("j", "me", order.request)
    for data in order.batches["t"]:
        assert isinstance(data, bytes)
        if number_of(data) in numbers:
            place.gateway.put_batch("j", "me", data)


def several(work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    with ThreadPoolExecutor(IN_TRANSIT) as pool:
        yield from in_order(pool, work, items, ahead=IN_TRANSIT - 1)


EACH = pytest.mark.parametrize("each", [map, several], ids=["one at a time", "several"])
ARRIVED = {
    "the first ones": (0, 1, 2),
    "all but the first": (1, 2, 3),
    "with a hole": (0, 1, 3),
    "only a later one": (3,),
}


@EACH
@pytest.mark.parametrize("arrived", ARRIVED.values(), ids=ARRIVED)
def test_names_that_changed_places_are_a_conflict_and_nothing_is_mixed(
    arrived: tuple[int, ...], each: Any, place: Place, folder: Path
) -> None:
    """However often it is tried; with the right file again, the answer is right."""
    send_some(place, order(folder, "a,b"), *arrived)
    wrong = Asked(place.gateway)
    for _ in range(2):
        with pytest.raises(ConflictError, match="the file changed"):
            send(wrong, place, order(folder, "b,a"), look_first=True, each=each)
    assert set(wrong.put) <= set(arrived), "nothing new was sent"
    right = Asked(place.gateway)
    client = Uploader(right, place.clock, look_first=True, each=each)
    outcome, results = client.run(order(folder, "a,b"))
    assert outcome.state == "done"
    assert outputs.decode_result(results["q"], "q")[1].to_pylist() == [{"n": sum(range(ROWS))}]
    assert len(set(right.put) & set(arrived)) == 1


@EACH
def test_each_file_has_a_header_of_its_own(each: Any, place: Place, folder: Path) -> None:
    whole = order(folder, "a,b", "a,b", "a,b")
    each_file = len(list(whole.batches["t"])) // 3
    send_some(place, whole, *range(each_file + 2))
    asked = Asked(place.gateway)
    with pytest.raises(ConflictError, match="the file changed"):
        send(asked, place, order(folder, "a,b", "b,a", "a,b"), look_first=True, each=each)
    assert max(asked.put) <= each_file + 1
    asked = Asked(place.gateway)
    send(asked, place, order(folder, "a,b", "a,b", "b,a"), look_first=True, each=each)
    again = [number for number in asked.put if number < each_file + 2]
    assert len(again) == 2
    assert [number // each_file for number in sorted(again)] == [0, 1]


def test_a_client_that_resumes_sends_one_batch_of_a_file_again(place: Place, folder: Path) -> None:
    whole = order(folder, "a,b")
    last = len(list(whole.batches["t"])) - 1
    with pytest.raises(KilledError):
        send(Asked(place.gateway, lost=frozenset([6])), place, whole)
    asked = Asked(place.gateway)
    send(asked, place, whole, look_first=True)
    assert asked.put == [0, *range(6, last + 1)]
    place.work()
    late = Asked(place.gateway)
    send(late, place, whole, look_first=True)
    assert late.put == [], "the job is done: only its ends are compared"


def test_the_header_of_the_previous_file_is_no_excuse(place: Place, folder: Path) -> None:
    """Also where only a file's last batch is missing, and of a file of one batch."""
    headers = ["a,b", "a,b", "a,b"]
    whole = order(folder, *headers)
    some = list(whole.batches["t"])
    send_some(place, whole, *(one for one in range(len(some)) if one % 7))
    for wrong in range(3):
        changed = [("b,a" if one == wrong else "a,b") for one in range(3)]
        with pytest.raises(ConflictError, match="the file changed"):
            send(Asked(place.gateway), place, order(folder, *changed), look_first=True)


def test_batches_that_say_their_names_themselves_are_not_sent_again(
    place: Place, folder: Path
) -> None:
    """Typed rows: their digest is of the names, too."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    order(folder)
    for number in range(3):
        table = pa.table({"a": ["x"], "b": [number]})
        pq.write_table(table, folder / f"{number}.parquet")
    files = sorted(folder.glob("*.parquet"))
    request = order(folder).request
    whole = UploadRequest("j", request, {"t": list(cut_files("t", files, BATCH_BYTES))})
    send_some(place, whole, 0, 1)
    asked = Asked(place.gateway)
    send(asked, place, whole, look_first=True)
    assert asked.put == [2]
