"""Tables on a screen: what fits is shown whole, what does not is folded or left out and told."""

import random
import re
from pathlib import Path

import pytest

from caudal.cli.layout import EDGES, GAP, ColumnSize, lay_out, more_columns
from caudal.cli.main import main
from caudal.cli.status import ExitStatus

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def shown(select: str, capsys: Capture, *more: str) -> list[str]:
    assert main(["sql", select, *more]) == ExitStatus.OK
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    return lines


def wide(folder: Path, columns: int, rows: int) -> str:
    names, values = (",".join(f"{word}{n}" for n in range(columns)) for word in ("c", ""))
    (folder / "wide.csv").write_text("\n".join([names, *[values] * rows]) + "\n")
    return f"FROM '{folder}/wide.csv'"


def test_forty_columns_show_the_first_and_say_how_many_are_left_out(
    capsys: Capture, tmp_path: Path
) -> None:
    lines = shown(wide(tmp_path, 40, 2), capsys)
    heading = next(line for line in lines if "c0" in line)
    kept = re.findall(r"c\d+", heading)
    assert kept == [f"c{place}" for place in range(len(kept))]
    assert 10 < len(kept) < 40
    assert f"… {40 - len(kept)} more" in heading
    assert any(line.split() == [*map(str, range(len(kept))), "…"] for line in lines)
    assert f"{40 - len(kept)} columns are not shown: use --format fields" in " ".join(lines)


def test_one_wide_row_is_shown_field_by_field(capsys: Capture, tmp_path: Path) -> None:
    lines = shown(wide(tmp_path, 40, 1), capsys)
    assert [line.split() for line in lines[1:41]] == [[f"c{n}", str(n)] for n in range(40)]
    assert "not shown" not in lines[-2]


def test_fields_of_several_rows(capsys: Capture) -> None:
    select = "SELECT i AS n, repeat('x', 90) AS text FROM range(2) AS t(i)"
    lines = shown(select, capsys, "--format", "fields")
    assert lines[:3] == ["row 1", "n     0", f"text  {'x' * 73}…"]
    assert lines[3:5] == ["row 2", "n     1"]


def test_long_texts_are_folded_and_numbers_are_not(capsys: Capture) -> None:
    texts = "repeat('lorem ipsum ', 8) AS a, repeat('dolor ', 16) AS b"
    lines = shown(f"SELECT {texts}, 123456789012345 AS n, DATE '2026-01-31' AS d", capsys)
    assert any("123456789012345" in line and "2026-01-31" in line for line in lines)
    assert " ".join(lines).count("ipsum") == 8


def test_null_is_not_an_empty_text(capsys: Capture) -> None:
    lines = shown("SELECT NULL AS a, '' AS b, [NULL, ''] AS c", capsys)
    assert lines[3].split() == ["NULL", "NULL,"]


def test_decisions() -> None:
    dice = random.Random(1)
    for _ in range(300):
        columns = [
            ColumnSize(dice.randrange(30), dice.randrange(100), dice.random() < 0.5)
            for _ in range(dice.randrange(1, 40))
        ]
        width = dice.randrange(20, 200)
        layout = lay_out(columns, width)
        widths = [*layout.widths]
        assert len(widths) + layout.left_out == len(columns)
        for given, size in zip(widths, columns, strict=False):
            assert size.least <= given <= size.natural
        if layout.left_out:
            widths.append(len(more_columns(layout.left_out)))
        if len(layout.widths) > 1:
            assert sum(widths) + GAP * (len(widths) - 1) + EDGES <= width


def test_quiet_says_nothing_but_rejected_rows(
    capsys: Capture, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("data")
    (folder / "x.csv").write_text('a\n1\n"open\n')
    asked = ["sql", "SELECT count(*) AS n FROM 'x.csv'", "-d", str(folder)]
    assert main([*asked, "--quiet", "--out", str(folder / "n.csv")]) == ExitStatus.OK
    assert capsys.readouterr() == ("", "rejected: x: 1 row: unclosed quote (line 3)\n")
    assert main(asked) == ExitStatus.OK
    assert "in all" in capsys.readouterr().err
