"""Waves are cut in advance, in the order of the tables."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from caudal.errors import DataError
from caudal.spark.inputs import Wave, enough_parts, waves_ahead


@dataclass
class Cut:
    """Inputs whose waves are given; notes which were cut."""

    waves_of: dict[str, list[Wave]]
    begun: list[str] = field(default_factory=list)
    moved: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def waves(self, one: Any, notes: list[Any]) -> Iterator[Wave]:
        for wave in self.waves_of[one.table.name]:
            self.begun.append(one.table.name)
            self.moved.release()
            if wave.source_bytes < 0:
                raise DataError("cannot be cut")
            yield wave


def table(name: str) -> Any:
    return SimpleNamespace(table=SimpleNamespace(name=name))


def ahead(cut: Cut) -> Any:
    tables = [table(name) for name in cut.waves_of]
    notes: dict[str, list[Any]] = {name: [] for name in cut.waves_of}
    return waves_ahead(tables, cut, notes, lambda: 0.0)  # type: ignore[arg-type]


def test_parts_that_were_cut_meanwhile_are_one_wave() -> None:
    parts = [Wave(whole, {n: bytes([n])}, 10) for n, whole in enumerate([False, False, True])]
    cut = Cut({"small": [Wave(whole=False)], "large": parts})
    coming = ahead(cut)
    assert next(coming)[0] == "small"
    for _ in range(4):
        cut.moved.acquire()  # the next table is cut although nobody asked for it
    found = [wave for name, wave in coming if name == "large" and wave is not None]
    assert {n for wave in found for n in wave.batches} == {0, 1, 2}
    assert sum(wave.source_bytes for wave in found) == 30
    assert [n for wave in found if wave.whole for n in wave.batches] == [2]


def test_the_end_of_each_table_comes() -> None:
    wave = Wave(whole=True)
    assert list(ahead(Cut({"a": [], "b": [wave], "c": []}))) == [
        ("a", None), ("b", wave), ("b", None), ("c", None),
    ]  # fmt: skip


RANGE, MANY = Wave(False, {}, 400 << 20), Wave(False, {}, 1 << 30)
WHOLE, OLD, END = Wave(True, {}, 1), Wave(False, {}, 1, made=-1.0), None


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([], 0),
        ([RANGE, RANGE], 0),
        ([RANGE, RANGE, RANGE], 3),
        ([RANGE, MANY], 2),
        ([WHOLE], 1),
        ([RANGE, WHOLE], 2),
        ([OLD], 1),
        ([OLD, RANGE], 2),
        ([OLD, END, RANGE], 2),
        ([END], 1),
        ([RANGE, END], 2),
        ([RANGE, END, MANY, END], 2),
    ],
)
def test_ranges_wait_until_they_are_worth_an_action(
    parts: list[Wave | None], expected: int
) -> None:
    assert enough_parts([("t", one) for one in parts], now=0.0) == expected


def test_a_table_that_is_cut_soon_is_one_wave() -> None:
    parts = [Wave(False, {n: b""}, 10) for n in range(5)]
    found = list(ahead(Cut({"t": parts})))
    assert [(name, wave and list(wave.batches)) for name, wave in found] == [
        ("t", [0, 1, 2, 3, 4]), ("t", None),
    ]  # fmt: skip


def test_an_error_of_cutting_comes_in_its_place() -> None:
    wave = Wave(whole=False)
    coming = ahead(Cut({"good": [wave], "bad": [Wave(whole=False, source_bytes=-1)]}))
    assert [next(coming), next(coming)] == [("good", wave), ("good", None)]
    with pytest.raises(DataError, match="cannot be cut"):
        next(coming)
