"""The page that several benchmarks write, and files cut by hand for rivals."""

import csv
from pathlib import Path

import pytest
from bench import section
from bench.cluster_rivals import cutting

PAGE = "# Benchmarks\n\nsome table\n"


def test_a_part_is_appended_and_then_replaced() -> None:
    page = section.written(section.written(PAGE, "head", "h"), "whole", "old \\1")
    again = section.written(page, "whole", "new \\1")
    assert page.startswith(PAGE)
    assert again == page.replace("old", "new")


def test_parts_outlive_the_rest_of_the_page() -> None:
    page = section.written(section.written(PAGE, "head", "h"), "whole", "w")
    other = "# Other\n\n" + section.kept(page)
    assert section.written(other, "whole", "w") == other
    assert other.count("begins") == 2
    assert section.kept(PAGE) == ""


@pytest.mark.parametrize("size", [7, 16, 64, 1_000])
def test_every_record_is_in_one_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    rows = [[f"{number}", 'a "b"\nc,\n' * (number % 3), "x" * (number % 5)] for number in range(60)]
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["k", "text", "x"], *rows])
    monkeypatch.setattr(cutting, "BLOCK_BYTES", size)
    spans = cutting.spans(path)
    blocks = cutting.blocks(spans, [cutting.count_quotes(span) for span in spans])
    monkeypatch.setattr(cutting, "BLOCK_BYTES", 1 << 20)
    tables = [cutting.read(block, ["k", "text"]).to_pylist() for block in blocks]
    found = [row for table in tables for row in table]
    assert found == [{"k": row[0], "text": row[1] or None} for row in rows]
