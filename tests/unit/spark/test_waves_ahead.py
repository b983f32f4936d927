"""Waves are cut in advance, in the order of the tables."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from caudal.errors import DataError
from caudal.spark.inputs import Wave, waves_ahead


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
    return waves_ahead(tables, cut, {name: [] for name in cut.waves_of})  # type: ignore[arg-type]


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


def test_a_table_without_waves_comes_once() -> None:
    wave = Wave(whole=True)
    assert list(ahead(Cut({"a": [], "b": [wave], "c": []}))) == [
        ("a", None), ("b", wave), ("c", None),
    ]  # fmt: skip


def test_an_error_of_cutting_comes_in_its_place() -> None:
    wave = Wave(whole=False)
    coming = ahead(Cut({"good": [wave], "bad": [Wave(whole=False, source_bytes=-1)]}))
    assert next(coming) == ("good", wave)
    with pytest.raises(DataError, match="cannot be cut"):
        next(coming)
