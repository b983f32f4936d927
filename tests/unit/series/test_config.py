"""A dataset's TOML file: every mistake is one line that names it."""

from pathlib import Path

import pytest

from caudal.series import load_config, shipped_configs
from caudal.series.errors import ConfigError

GOOD = """
dataset_id = "d"
provider = "P"
timezone = "America/Argentina/Buenos_Aires"
primary_keys = ["obs_time", "internal_series_code"]
[source]
kind = "file"
format = "xlsx"
[[series]]
internal_series_code = "A"
unit = "u"
frequency = "D"
sheet = "S"
first_row = 27
date_column = "M"
value_column = "N"
date_format = "%d/%m/%Y"
"""


def test_the_documented_example_loads(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(GOOD)
    config = load_config(tmp_path / "c.toml")
    assert config.series[0].value_column == "N"
    assert config.find("A") is config.series[0]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"d"', '"a/b"', "dataset_id 'a/b' must be letters"),
        ('"d"', '".."', "dataset_id '..' must be letters"),
        ('"A"', '".tmp"', "internal_series_code '.tmp' must be"),
        ('"obs_time", ', "", "primary_keys: add obs_time or obs_date"),
        ('"obs_time", "internal_series_code"', '"obs_time"', "primary_keys: add internal_series_"),
        ('"obs_time", ', '"obs_time", "obs_time", ', "'obs_time' is there twice"),
        ('"obs_time", ', '"value", ', "'value' is none of the columns for keys: obs_time, "),
        ("Argentina/Buenos_Aires", "Atlantis", "is unknown"),
        ("first_row = 27\n", "", "first_row is missing"),
        ("first_row = 27", "first_row = 0", "first_row must be 1 or more"),
        ('sheet = "S"\n', "", "sheet is missing: give the name"),
        ('"M"', '"fecha"', "date_column of a workbook is a letter"),
        ('"xlsx"', '"ods"', '[source] format = "ods": must be "xlsx", "xls" or "csv"'),
        ('"xlsx"', '"csv"', "a csv has no sheets: remove sheet"),
        ('unit = "u"\n', "", "[[series]] 1: unit: is missing"),
        ('unit = "u"', 'unit = "u"\nunti = "v"', "unti: unknown key; do you mean unit?"),
        ("[source]", "[source", "not valid TOML"),
        ('"d"', f'"{"d" * 101}"', "dataset_id is longer than 100 characters"),
        ('"A"', f'"{"A" * 101}"', "internal_series_code is longer than 100 characters"),
        ("%d/%m/%Y", "%d/%d/%Y", "no date can be read with date_format '%d/%d/%Y'"),
        ("%d/%m/%Y", "%Q", "no date can be read with date_format '%Q'"),
        ("%d/%m/%Y", "%d/%m/%", "no date can be read with date_format"),
        ("%d/%m/%Y", "%d/%m", "no date can be read with date_format '%d/%m'"),
    ],
)
def test_mistakes(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    assert old in GOOD
    (tmp_path / "c.toml").write_text(GOOD.replace(old, new))
    with pytest.raises(ConfigError, match=r"c\.toml") as raised:
        load_config(tmp_path / "c.toml")
    assert complaint in str(raised.value)


@pytest.mark.parametrize("separator", ["5", "x", "+", "-", "..", "\u0665"])
@pytest.mark.parametrize("field", ["decimal_separator", "thousands_separator"])
def test_a_separator_is_no_part_of_a_number(tmp_path: Path, field: str, separator: str) -> None:
    (tmp_path / "c.toml").write_text(f'{GOOD}{field} = "{separator}"\n')
    with pytest.raises(ConfigError, match=f"{field} must be one character"):
        load_config(tmp_path / "c.toml")


@pytest.mark.parametrize("separators", [(",", "."), (".", ""), (",", " "), ("·", "\u202f")])
def test_usual_separators(tmp_path: Path, separators: tuple[str, str]) -> None:
    decimal, thousands = separators
    fields = f'decimal_separator = "{decimal}"\nthousands_separator = "{thousands}"\n'
    (tmp_path / "c.toml").write_text(GOOD + fields)
    assert load_config(tmp_path / "c.toml").series[0].thousands_separator == thousands


@pytest.mark.parametrize(
    "date_format", ["%Y", "%Y-%m", "%d.%m.%y", "%Y-%m-%dT%H:%M:%S%z", "%d %b %Y", "%G-W%V-%u"]
)
def test_usual_date_formats(tmp_path: Path, date_format: str) -> None:
    (tmp_path / "c.toml").write_text(GOOD.replace("%d/%m/%Y", date_format))
    assert load_config(tmp_path / "c.toml").series[0].date_format == date_format


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c.toml").write_text(GOOD)

    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ConfigError, match=r"cannot read .*c\.toml: Permission denied"):
        load_config(tmp_path / "c.toml")


def test_a_code_twice(tmp_path: Path) -> None:
    entry = GOOD[GOOD.index("[[series]]") :]
    (tmp_path / "c.toml").write_text(GOOD + entry)
    with pytest.raises(ConfigError, match="two series are called 'A'"):
        load_config(tmp_path / "c.toml")


def test_no_such_file_names_the_examples(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="bcra_infomondia"):
        load_config(tmp_path / "nowhere.toml")


@pytest.mark.parametrize("name", shipped_configs())
def test_shipped_examples_are_sound(name: str) -> None:
    config = load_config(shipped_configs()[name])
    assert config.provider == "BCRA"
    if name == "bcra_infomondia":
        assert len(config.series) >= 10
