"""Dirty sources: every rejected cell is reported with sheet, row, column and reason."""

import zipfile
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest
from tests.harness.series_world import World, objects

from caudal.series import Catalog, consolidate_all, find_config, ingest, load_config, read_series
from caudal.series.errors import SourceError
from caudal.series.sources import NoObservationsError, read_source
from caudal.store import MemoryStore

# Writers of workbooks, for tests only.
openpyxl: Any = pytest.importorskip("openpyxl")
xlwt: Any = pytest.importorskip("xlwt")

CONFIG = """
dataset_id = "sheet"
provider = "P"
timezone = "America/Argentina/Buenos_Aires"
[source]
format = "{format}"
[[series]]
internal_series_code = "A"
unit = "u"
frequency = "D"
sheet = "DATOS | DATA"
first_row = 4
date_column = "B"
value_column = "D"
"""

CELLS: list[tuple[int, Any, Any]] = [
    (4, datetime(2024, 1, 1), 1.5),
    (5, datetime(2024, 1, 2), None),
    (6, datetime(2024, 1, 3), "n/d"),
    (7, datetime(2024, 1, 4), 0.0),
    (8, None, 7.0),
    (9, datetime(2024, 1, 4), 9.0),
    (10, datetime(2024, 1, 4), 0.0),
    (11, 45000.5, 3.0),
    (13, "Fuente: BCRA", None),
    (14, "(1) provisorio", "nota"),
]

REJECTED = [
    (5, "D", "empty"),
    (6, "D", "not a number: 'n/d'"),
    (8, "B", "empty"),
    (9, "D", "row 7 has another value for this date"),
    (11, "B", "not a date: '45000.5'"),
    (13, "B", "not a date: 'Fuente: BCRA'"),
    (14, "B", "not a date: '(1) provisorio'"),
    (14, "D", "not a number: 'nota'"),
]


def write_xlsx(path: Path, cells: list[tuple[int, Any, Any]] = CELLS) -> None:
    book = openpyxl.Workbook()
    sheet = book.create_sheet("DATOS | DATA")
    sheet["B1"] = "Merged header"
    sheet.merge_cells("B1:D1")
    for row, day, value in cells:
        sheet[f"B{row}"], sheet[f"D{row}"] = day, value
    book.save(path)


def write_xls(path: Path) -> None:
    book = xlwt.Workbook()
    sheet = book.add_sheet("DATOS | DATA")
    style = xlwt.easyxf(num_format_str="YYYY-MM-DD")
    for row, day, value in CELLS:
        if day is not None:
            sheet.write(row - 1, 1, day, *([style] if isinstance(day, datetime) else []))
        if value is not None:
            sheet.write(row - 1, 3, value)
    book.save(str(path))


@pytest.mark.parametrize(
    ("form", "write", "empty"),
    [("xlsx", write_xlsx, "empty"), ("xls", write_xls, "empty, or a formula error")],
)
def test_every_bad_cell_of_a_workbook_is_reported(
    tmp_path: Path, form: str, write: Any, empty: str
) -> None:
    (tmp_path / "c.toml").write_text(CONFIG.format(format=form))
    source = tmp_path / f"source.{form}"
    write(source)
    reading = read_source(load_config(tmp_path / "c.toml"), source, MemoryStore())
    assert [(one.day, one.value) for one in reading.observations] == [
        (date(2024, 1, 1), 1.5),
        (date(2024, 1, 4), 0.0),
    ]
    assert [(cell.row, cell.column, cell.reason) for cell in reading.rejected] == [
        (row, column, empty if reason == "empty" else reason) for row, column, reason in REJECTED
    ]
    assert {cell.sheet for cell in reading.rejected} == {"DATOS | DATA"}
    assert (reading.repeated, reading.blank_rows) == (1, 1)


ERRORS: list[tuple[int, Any, Any]] = [
    (4, datetime(2024, 1, 1), 1.5),
    (5, datetime(2024, 1, 2), "#N/A"),
    (6, "#REF!", 7.0),
    (7, "#REF!", "#DIV/0!"),
    (8, "#NAME?", None),
    (10, None, "#N/A"),
    (11, None, "#NUM!"),
]


def test_the_errors_of_formulas_are_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(CONFIG.format(format="xlsx"))
    write_xlsx(tmp_path / "a.xlsx", ERRORS)
    reading = read_source(load_config(tmp_path / "c.toml"), tmp_path / "a.xlsx", MemoryStore())
    assert [(one.day, one.value) for one in reading.observations] == [(date(2024, 1, 1), 1.5)]
    assert [(cell.row, cell.column, cell.reason) for cell in reading.rejected] == [
        (5, "D", "formula error: #N/A"),
        (6, "B", "formula error: #REF!"),
        (7, "B", "formula error: #REF!"),
        (7, "D", "formula error: #DIV/0!"),
        (8, "B", "formula error: #NAME?"),
        (10, "B", "empty"),
        (10, "D", "formula error: #N/A"),
        (11, "B", "empty"),
        (11, "D", "formula error: #NUM!"),
    ]
    assert {cell.kind for cell in reading.rejected} == {"empty", "formula error"}
    assert reading.blank_rows == 1


def rewrite(path: Path, part: str, change: Callable[[str], str]) -> None:
    with zipfile.ZipFile(path) as packed:
        texts = {name: packed.read(name).decode() for name in packed.namelist()}
    with zipfile.ZipFile(path, "w") as packed:
        for name, text in texts.items():
            packed.writestr(name, change(text) if name == part else text)


def test_errors_are_found_where_cells_do_not_say_their_place(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(CONFIG.format(format="xlsx"))
    write_xlsx(tmp_path / "a.xlsx")
    row = "<x:c/><x:c t='str'><x:v>{}</x:v></x:c><x:c r='C{}'/><x:c t='e'><x:v>#N/A</x:v></x:c>"
    good = '<x:c r="B6" t="str"><x:v>2024-01-03</x:v></x:c><x:c/><x:c><x:v>3</x:v></x:c>'
    rows = [
        f'<x:row r="4">{row.format("2024-01-01", 4)}</x:row>',
        f"<x:row>{row.format('2024-01-02', 9)}</x:row>",
        f"<x:row>{good}</x:row>",
    ]
    space = 'xmlns:x="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    text = f"<x:worksheet {space}><x:sheetData>{''.join(rows)}</x:sheetData></x:worksheet>"
    rewrite(tmp_path / "a.xlsx", "xl/worksheets/sheet2.xml", lambda _: text)
    reading = read_source(load_config(tmp_path / "c.toml"), tmp_path / "a.xlsx", MemoryStore())
    assert [(one.day, one.value) for one in reading.observations] == [(date(2024, 1, 3), 3.0)]
    assert [(cell.row, cell.column, cell.reason) for cell in reading.rejected] == [
        (4, "D", "formula error: #N/A"),
        (5, "D", "formula error: #N/A"),
    ]


def test_where_errors_cannot_be_found_an_empty_cell_may_be_one(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(CONFIG.format(format="xlsx"))
    write_xlsx(tmp_path / "a.xlsx", ERRORS)
    rewrite(tmp_path / "a.xlsx", "xl/workbook.xml", lambda text: f"<!DOCTYPE a>{text}")
    reading = read_source(load_config(tmp_path / "c.toml"), tmp_path / "a.xlsx", MemoryStore())
    assert [(cell.row, cell.column, cell.reason) for cell in reading.rejected] == [
        (5, "D", "empty, or a formula error"),
        (6, "B", "empty, or a formula error"),
    ]


def test_what_cannot_be_read_at_all_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(CONFIG.format(format="xlsx"))
    config, store = load_config(tmp_path / "c.toml"), MemoryStore()
    book = openpyxl.Workbook()
    book.save(tmp_path / "other.xlsx")
    (tmp_path / "text.xlsx").write_text("hello")
    with pytest.raises(SourceError, match=r"no sheet 'DATOS \| DATA'; its sheets are: 'Sheet'"):
        read_source(config, tmp_path / "other.xlsx", store)
    with pytest.raises(SourceError, match="is not an Excel workbook"):
        read_source(config, tmp_path / "text.xlsx", store)
    with pytest.raises(SourceError, match="cannot read"):
        read_source(config, tmp_path / "nowhere.xlsx", store)


def test_a_stray_cell_far_away_is_refused_before_memory_is(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(CONFIG.format(format="xlsx"))
    book = openpyxl.Workbook()
    sheet = book.create_sheet("DATOS | DATA")
    sheet["B4"], sheet["D4"], sheet["XFD1048576"] = datetime(2024, 1, 1), 1.5, 7
    book.save(tmp_path / "far.xlsx")
    config = load_config(tmp_path / "c.toml")
    with pytest.raises(SourceError, match=r"sheet2\.xml: cell XFD1048576 .* delete stray cells"):
        read_source(config, tmp_path / "far.xlsx", MemoryStore())


def test_a_panic_of_the_reader_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        """As the reader's library raises it, under this name only."""

    class Panicking:
        def get_sheet_by_name(self, name: str) -> None:
            raise PanicException("chunk size must be non-zero")

    (tmp_path / "c.toml").write_text(CONFIG.format(format="xlsx"))
    write_xlsx(tmp_path / "a.xlsx")
    monkeypatch.setattr(
        "python_calamine.CalamineWorkbook.from_filelike",
        lambda data: Panicking(),
        raising=False,
    )
    with pytest.raises(SourceError, match="cannot be read: chunk size"):
        read_source(load_config(tmp_path / "c.toml"), tmp_path / "a.xlsx", MemoryStore())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("day,alpha,beta\n", "no row holds a date or a value"),
        ("day,alpha,beta\n,,\n", "no row holds a date or a value"),
        ("day,alpha,beta\n1/1/24,1,?\n", "3 cells were rejected, the first: row 2, column day"),
    ],
)
def test_a_source_without_observations_is_refused(tmp_path: Path, text: str, told: str) -> None:
    world, store = World(tmp_path), MemoryStore()
    (tmp_path / "none.csv").write_text(text)
    with pytest.raises(NoObservationsError, match=r"check first_row, .* and date_format") as raised:
        ingest(world.catalog(store), world.config, tmp_path / "none.csv")
    assert told in str(raised.value)
    assert objects(store) == {}


def test_a_column_name_that_comes_twice(tmp_path: Path) -> None:
    world = World(tmp_path)
    (tmp_path / "twice.csv").write_text("day,alpha,beta,alpha,x,x\n2024-01-01,1,2,3,4,5\n")
    with pytest.raises(SourceError, match="two columns 'alpha'"):
        read_source(world.config, tmp_path / "twice.csv", MemoryStore())


def test_a_dirty_csv(tmp_path: Path) -> None:
    world = World(tmp_path)
    source = tmp_path / "dirty.csv"
    source.write_text(
        "day,alpha,beta\n2024-01-01,1,\n2024-01-02,x,2\n2024-01-03,3\n,,\n30/1/2024,4,4\n"
    )
    reading = read_source(world.config, source, MemoryStore())
    assert [(one.series_code, one.value) for one in reading.observations] == [
        ("ALPHA", 1.0),
        ("BETA", 2.0),
    ]
    assert [(c.series_code, c.row, c.column, c.reason) for c in reading.rejected] == [
        ("", 4, "", "too few fields"),
        ("ALPHA", 3, "alpha", "not a number: 'x'"),
        ("ALPHA", 6, "day", "not a date: '30/1/2024'"),
        ("BETA", 2, "beta", "empty"),
        ("BETA", 6, "day", "not a date: '30/1/2024'"),
    ]


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    world = World(tmp_path)
    (tmp_path / "other.csv").write_text("day,alpha\n2024-01-01,1\n")
    with pytest.raises(SourceError, match="no column 'beta'; its columns are: day, alpha"):
        read_source(world.config, tmp_path / "other.csv", MemoryStore())


def test_a_source_in_the_store(tmp_path: Path) -> None:
    world = World(tmp_path)
    path = tmp_path / "object.toml"
    text = (tmp_path / "little-0.toml").read_text()
    path.write_text(text.replace("[source]", '[source]\nkind = "object"'))
    store = MemoryStore()
    store.create("incoming/a.csv", world.uniform(1).read_bytes())
    assert ingest(world.catalog(store), load_config(path), "incoming/a.csv").added == 6
    with pytest.raises(SourceError, match="the store has no object"):
        ingest(world.catalog(store), load_config(path), "incoming/b.csv")


class Real(NamedTuple):
    """A shipped example, its file, and what is in it."""

    config: str
    file: str
    added: int
    rejected: int
    code: str
    first: tuple[str, float]
    last: tuple[str, float]
    rows: int


REAL = [
    Real("bcra_infomondia", "infomondia.xlsx", 43_236, 3_682, "BCRA_RESERVAS_USD_M_D",
         ("2017-01-01", 39308.31554175972), ("2025-08-12", 41991.0), 3_146),
    Real("bcra_base_monetaria", "base_monetaria.csv", 7_296, 0, "BCRA_BASE_MONETARIA_ARS_M_D",
         ("1996-01-02", 13069.0), ("2025-08-12", 42659621.0), 7_296),
    Real("bcra_reservas", "reservas.csv", 3_461, 0, "BCRA_RESERVAS_USD_M_D",
         ("2003-01-02", 10501.0), ("2017-01-11", 39665.0), 3_461),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("real", REAL, ids=[real.config for real in REAL])
def test_the_real_files(real_data: Path, real: Real) -> None:
    catalog, config = Catalog(MemoryStore(), parallel=1), find_config(real.config)
    source = real_data / "bcra" / real.file
    outcome = ingest(catalog, config, source)
    assert (outcome.added, len(outcome.rejected)) == (real.added, real.rejected)
    assert ingest(catalog, config, source).version is None
    consolidate_all(catalog, config)
    table = read_series(catalog, config, real.code).table
    rows = [(str(row["obs_date"]), row["value"]) for row in table.to_pylist()]
    assert (rows[0], rows[-1], len(rows)) == (real.first, real.last, real.rows)


def test_every_cell_of_the_real_workbook_is_accounted_for(real_data: Path) -> None:
    config, source = find_config("bcra_infomondia"), real_data / "bcra" / "infomondia.xlsx"
    cells = whole_tree(source, "xl/worksheets/sheet2.xml")
    last = max(row for row, _ in cells)
    expected, used = [], 0
    for series in config.series:
        columns = (series.date_column, series.value_column)
        for row in range(series.first_row or 1, last + 1):
            pair = [cells.get((row, column), "") for column in columns]
            bad = [(c, why_not(held)) for c, held in zip(columns, pair, strict=True)]
            bad = [(column, reason) for column, reason in bad if reason and any(pair)]
            expected += [(series.internal_series_code, row, *one) for one in bad]
            used += any(pair) and not bad
    reading = read_source(config, source, MemoryStore())
    found = [(cell.series_code, cell.row, cell.column, cell.reason) for cell in reading.rejected]
    assert found == expected
    assert len(reading.observations) + reading.repeated == used
    assert {cell.sheet for cell in reading.rejected} == {"DATOS | DATA"}
    kinds = Counter(cell.kind for cell in reading.rejected)
    assert kinds == {"formula error": 2_784, "empty": 898}


def why_not(held: str) -> str:
    if not held:
        return "empty"
    return f"formula error: {held}" if held.startswith("#") else ""


def whole_tree(source: Path, part: str) -> dict[tuple[int, str], str]:
    """What the cells of a sheet hold, by row and column. This file's cells all say their place."""
    with zipfile.ZipFile(source) as packed:
        tree = ElementTree.fromstring(packed.read(part))
    found = {}
    for cell in tree.iterfind("{*}sheetData/{*}row/{*}c"):
        column = cell.attrib["r"].rstrip("0123456789")
        value = cell.findtext("{*}v") or ""
        assert value.startswith("#") == (cell.get("t") == "e")
        found[int(cell.attrib["r"].removeprefix(column)), column] = value
    return found
