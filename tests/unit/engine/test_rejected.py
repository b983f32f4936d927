"""However many rows a batch rejects: exact counts, bounded lines."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from caudal.files import rejected as rejected_module
from caudal.files.rejected import OTHER, RejectedRows
from caudal.formats import mapped
from caudal.kernels.csv import NO_DAMAGE, Batch, DamagedLines, Header, read_batch
from caudal.kernels.csv.records import STRAY_QUOTE, TOO_FEW
from caudal.model import RejectedRow
from caudal.results.rejects import Rejects


def rejected(reasons: list[str], damaged: DamagedLines = NO_DAMAGE) -> RejectedRows:
    lines = np.arange(2, 2 + 2 * len(reasons), 2)
    return RejectedRows.of("t", "f.csv", damaged, lines, pa.array(reasons, pa.string()))


def kept(rows: RejectedRows) -> list[mapped.Rejection]:
    return mapped.rejections(rows.kept(), "k")


def counted(found: list[mapped.Rejection]) -> Counter[str]:
    counts = Counter[str]()
    for one in found:
        counts[one.reason] += one.rows
    return counts


def test_both_kinds_come_in_the_order_of_lines() -> None:
    damaged = DamagedLines(np.array([3, 9]), np.array([TOO_FEW, STRAY_QUOTE], np.int8))
    rows = rejected(["a", "b", "a"], damaged)
    told = [(row.line, row.reason) for row in rows]
    assert told == [(2, "a"), (3, "too few fields"), (4, "b"), (6, "a"), (9, "stray quote")]
    assert kept(rows) == [(*one, 1) for one in told]


def test_the_first_lines_are_kept_and_all_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejected_module, "MOST_LINES", 3)
    reasons = ["a", "b"] * 50 + ["c"]
    found = kept(rejected(reasons))
    assert found[:3] == [(2, "a", 1), (4, "b", 1), (6, "a", 1)]
    assert found[3:] == [(0, "b", 49), (0, "a", 48), (0, "c", 1)]
    assert counted(found) == Counter(reasons)


def test_reasons_without_number_or_end_are_counted_as_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rejected_module, "MOST_LINES", 2)
    monkeypatch.setattr(rejected_module, "MOST_REASONS", 5)
    found = kept(rejected([f"reason {n}" for n in range(100)]))
    assert len(found) == 2 + 5 + 1
    assert found[-1] == (0, OTHER, 93)
    monkeypatch.setattr(rejected_module, "MOST_TEXT_BYTES", 1000)
    found = kept(rejected(["x" * 600, "x" * 600, "y"]))
    assert found == [(2, "x" * 600, 1), (0, "x" * 600, 1), (0, "y", 1)]
    found = kept(rejected(["x" * 2000]))
    assert found == [(0, OTHER, 1)]


def test_millions_of_damaged_lines_take_no_object_each() -> None:
    data = np.frombuffer(b"x\n" * 4_000_000, np.uint8)
    found = read_batch(Batch("f", Header(("a", "b")), 0, 2, 0, 0, data), ["a"])
    rows = RejectedRows.of("t", "f", found.damaged)
    assert len(rows) == 4_000_000
    stored = rows.kept()
    assert stored.num_rows == rejected_module.MOST_LINES + 1
    assert stored.nbytes < 5_000_000
    assert counted(mapped.rejections(stored, "k")) == {"too few fields": 4_000_000}


def test_a_report_counts_rows_whose_lines_nobody_kept() -> None:
    told: list[RejectedRow] = []
    rejects = Rejects(sink=told.append)
    rows = [RejectedRow("t", "f", 2, "a"), RejectedRow("t", "f", 0, "a", 41)]
    rejects.add(rows)
    assert rejects.counts() == {"t": {"a": 42}}
    assert [one.first for one in rejects] == [[("f", 2)]]
    assert told == rows[:1]


def test_a_report_holds_only_so_many_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caudal.results.rejects.MOST_REASONS", 3)
    rejects = Rejects()
    rejects.add(RejectedRow("t", "f", n + 2, f"reason {n}") for n in range(10))
    assert rejects.total == 10
    assert rejects.counts()["t"]["other reasons"] == 7


def test_rejects_of_an_older_object_count_one_each() -> None:
    old = pa.table({"line": pa.array([3], pa.int64()), "reason": ["a"]})
    assert mapped.rejections(old, "k") == [(3, "a", 1)]
