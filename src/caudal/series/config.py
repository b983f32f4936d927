"""The description of a dataset: one TOML file, read once and checked completely.

Each mistake is reported as one line that names the file and the field.
"""

import re
import zoneinfo
from datetime import UTC, datetime
from enum import StrEnum
from importlib import resources
from pathlib import Path

import msgspec

from caudal.series import rows
from caudal.series.addresses import address_problem
from caudal.series.errors import ConfigError
from caudal.series.layout import NAME, Month
from caudal.toml import TomlError, decode_toml

_LETTERS = re.compile(r"[A-Z]{1,3}\Z")
_LONGEST_NAME = 100  # names become folders and keys, and stores limit their length
_SAMPLE = datetime(2024, 1, 31, tzinfo=UTC)


class SourceKind(StrEnum):
    """The place of the source: a local file, an object in the store, or an HTTP address."""

    FILE = "file"
    OBJECT = "object"
    HTTP = "http"


class SourceFormat(StrEnum):
    """The file format of the source."""

    XLSX = "xlsx"
    XLS = "xls"
    CSV = "csv"


class SeriesSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The place and the format of the source of the observations."""

    format: SourceFormat
    kind: SourceKind = SourceKind.FILE
    url: str = ""  # of kind http, for an ingest that names no source


class Series(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One series and the cells from which it is read."""

    internal_series_code: str
    unit: str
    frequency: str
    date_column: str  # a letter (xlsx, xls) or the name of a column (csv)
    value_column: str
    sheet: str = ""
    first_row: int | None = None  # counted as in the spreadsheet; for csv the line
    date_format: str = ""  # for dates that are text; the default is ISO 8601
    decimal_separator: str = "."  # for numbers that are text
    thousands_separator: str = ""


class SeriesConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A dataset: its publisher, how it is read, and its series."""

    dataset_id: str
    provider: str
    timezone: str
    source: SeriesSource
    series: tuple[Series, ...]
    primary_keys: tuple[str, ...] = rows.PRIMARY_KEYS
    title: str = ""

    @property
    def is_by_day(self) -> bool:
        """Whether a day has one observation, whatever its time."""
        return "obs_time" not in self.primary_keys

    def month(self, year: int, month: int) -> Month:
        return Month(self.dataset_id, year, month)

    def find(self, series_code: str) -> Series:
        """Return the series with this code.

        Raise a ConfigError that lists the codes if it is missing.
        """
        for series in self.series:
            if series.internal_series_code == series_code:
                return series
        codes = ", ".join(series.internal_series_code for series in self.series)
        raise ConfigError(f"{self.dataset_id} has no series {series_code!r}; it has: {codes}")


def shipped_configs() -> dict[str, Path]:
    """Return the example configs inside the package, by name."""
    root = Path(str(resources.files("caudal"))) / "series" / "examples"
    return {path.stem: path for path in sorted(root.glob("*.toml"))}


def find_config(name: str) -> SeriesConfig:
    """Return the config of this name: a shipped example, or else a file by its path."""
    shipped = shipped_configs()
    return load_config(shipped[name] if name in shipped else Path(name))


def load_config(path: Path | str) -> SeriesConfig:
    """Read the config in a file. Raise a ConfigError that says what to fix."""
    path = Path(path)
    text = _read(path)
    try:
        config = decode_toml(text, SeriesConfig)
    except TomlError as error:
        raise ConfigError(f"{path}: {error}") from error
    problem = _problem(config)
    if problem:
        raise ConfigError(f"{path}: {problem}")
    return config


def _read(path: Path) -> bytes:
    try:
        if path.is_file():
            return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error
    raise ConfigError(
        f"no config {path}: give a TOML file, or a shipped example ({', '.join(shipped_configs())})"
    )


def _problem(config: SeriesConfig) -> str:
    """Return the first problem of a config, or an empty string."""
    if problem := _name_problem("dataset_id", config.dataset_id):
        return problem
    if problem := _key_problem(config.primary_keys):
        return f"primary_keys: {problem}"
    if problem := _source_problem(config.source):
        return f"source: {problem}"
    if not _is_timezone(config.timezone):
        return f"timezone {config.timezone!r} is unknown: write it like America/Argentina/Ushuaia"
    if not config.series:
        return "add at least one [[series]] entry"
    codes = [series.internal_series_code for series in config.series]
    for code in codes:
        if problem := _name_problem("internal_series_code", code):
            return problem
        if codes.count(code) > 1:
            return f"two series are called {code!r}"
    problems = (_series_problem(series, config.source.format) for series in config.series)
    return next(filter(None, problems), "")


def _source_problem(source: SeriesSource) -> str:
    if not source.url:
        return ""
    if source.kind is not SourceKind.HTTP:
        return 'url is for kind = "http": change the kind, or remove url'
    problem = address_problem(source.url)
    return f"url {problem}" if problem else ""


def _key_problem(keys: tuple[str, ...]) -> str:
    for name in keys:
        if name not in rows.KEY_COLUMNS:
            return f"{name!r} is none of the columns for keys: {', '.join(rows.KEY_COLUMNS)}"
        if keys.count(name) > 1:
            return f"{name!r} is there twice"
    if "internal_series_code" not in keys:
        return "add internal_series_code: every series has files of its own"
    if not {"obs_time", "obs_date"} & set(keys):
        return "add obs_time or obs_date: observations are kept by month"
    return ""


def _name_problem(field: str, name: str) -> str:
    if len(name) > _LONGEST_NAME:
        return f"{field} is longer than {_LONGEST_NAME} characters: {name[:20]}…"
    return "" if NAME.match(name) else f"{field} {name!r} must be letters, digits, _ . and -"


def _series_problem(series: Series, form: SourceFormat) -> str:
    name = f"series {series.internal_series_code!r}"
    if series.first_row is not None and series.first_row < 1:
        return f"{name}: first_row must be 1 or more"
    for field in ("decimal_separator", "thousands_separator"):
        if not _is_separator(getattr(series, field)):
            return f"{name}: {field} must be one character that is no digit, letter or sign"
    if not series.decimal_separator:
        return f"{name}: decimal_separator must be one character, such as a comma"
    if series.decimal_separator == series.thousands_separator:
        return f"{name}: decimal_separator and thousands_separator are the same"
    if series.date_format and not _is_date_format(series.date_format):
        return (
            f"{name}: no date can be read with date_format {series.date_format!r}: "
            "write it like %d/%m/%Y, each part once"
        )
    if form is SourceFormat.CSV:
        return f"{name}: a csv has no sheets: remove sheet" if series.sheet else ""
    if not series.sheet:
        return f"{name}: sheet is missing: give the name of the sheet"
    for field in ("date_column", "value_column"):
        if not _LETTERS.match(getattr(series, field)):
            return f"{name}: {field} of a workbook is a letter such as N or AB"
    if series.first_row is None:
        return f"{name}: first_row is missing: the first row of data, as the spreadsheet counts"
    return ""


def _is_separator(text: str) -> bool:
    return not text or (len(text) == 1 and not text.isalnum() and text not in "+-")


def _is_date_format(text: str) -> bool:
    """Return whether a date written in this format can be read again with at least its year."""
    try:
        return datetime.strptime(_SAMPLE.strftime(text).strip(), text).year == _SAMPLE.year
    except Exception:  # a wrong format can raise many classes of exception
        return False


def _is_timezone(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
