"""Numbers with decimal commas and dates in other forms, as the texts that SQL reads.

Rules:
1. A field that is wholly a number with a decimal comma, perhaps with points between thousands, is
   given with a decimal point and nothing else: `-1.234,50` becomes `-1234.50`. No digit changes.
2. A field that wholly has the date format is given as `YYYY-MM-DD`, with ` HH:MM:SS` and a fraction
   if the format has a time. Only digits move: whether there is such a day, SQL decides.
3. Every other field stays as it is.
4. A column is certainly one of numbers with decimal commas if all its texts are such numbers, and
   at least one can be nothing else: `1,5` and `1.234,567` can, `1,234` could be a thousand.
5. A column is certainly one of dates if all its texts have one form, and no other form fits: a
   number above 12 tells days from months, and points stand between days, months and years only.
"""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from caudal.files.date_pattern import date_pattern

_COMMA_NUMBER = r"^\s*[+-]?([0-9]{1,3}(\.[0-9]{3})+|[0-9]+)(,[0-9]+)?\s*$"
_ONLY_COMMA = r"(\..*,)|(,([0-9]{1,2}|[0-9]{4,})\s*$)|([0-9]{4},)|^\s*[+-]?0,"
_DAYS = ("%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d.%m.%Y", "%Y/%m/%d", "%Y.%m.%d")
_TIMES = ("", " %H:%M", " %H:%M:%S")


def convert(column: pa.Array, decimal: str | None, date_format: str | None) -> pa.Array:
    """Return a column of binary texts by rules 1 to 3."""
    if decimal == ",":
        column = _with_points(column)
    if date_format:
        column = _with_iso_dates(column, date_format)
    return column


def for_column(setting: str | Mapping[str, str] | None, name: str) -> str | None:
    """Return the setting of one column: one for all columns, or its own."""
    return setting.get(name) if isinstance(setting, Mapping) else setting


def _with_points(column: pa.Array) -> pa.Array:
    matches = pc.fill_null(pc.match_substring_regex(column, _COMMA_NUMBER), False)
    if not pc.any(matches).as_py():
        return column
    plain = pc.replace_substring(pc.replace_substring(column, ".", ""), ",", ".")
    return pc.if_else(matches, plain, column)


def _with_iso_dates(column: pa.Array, date_format: str) -> pa.Array:
    parts = pc.extract_regex(column, date_pattern(date_format))
    if parts.null_count == len(parts):
        return column
    named = {parts.type.field(place).name: parts.field(place)
             for place in range(parts.type.num_fields)}  # fmt: skip
    matches = pc.is_valid(parts)
    dates = _joined([_year(named), _two(named["m"]), _two(named["d"])], "-")
    if "H" in named:
        hours = [_two(named["H"]), named["M"], *([named["S"]] if "S" in named else [])]
        dates = _joined([dates, _joined(hours, ":")], " ")
    if "f" in named:
        dates = _joined([dates, named["f"]], ".")
    return pc.if_else(matches, dates, column)


def _year(named: Mapping[str, pa.Array]) -> pa.Array:
    """Return years of four digits; 69 to 99 are of the 20th century, as in Python."""
    if "Y" in named:
        return named["Y"]
    old = pc.greater_equal(named["y"], b"69")
    century = pc.if_else(old, pa.scalar(b"19"), pa.scalar(b"20"))
    return _joined([century, named["y"]], "")


def _two(digits: pa.Array) -> pa.Array:
    short = pc.equal(pc.binary_length(digits), 1)
    return pc.if_else(short, _joined([pa.scalar(b"0"), digits], ""), digits)


def _joined(parts: Sequence[pa.Array | pa.Scalar], mark: str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, pa.scalar(mark.encode(), pa.binary()))


def decimal_commas(columns: Mapping[str, pa.Array]) -> list[str]:
    """Return the columns that certainly hold numbers with decimal commas (rule 4)."""
    numbers = {
        name: texts for name, texts in columns.items()
        if len(texts) and pc.all(pc.match_substring_regex(texts, _COMMA_NUMBER)).as_py()
        and pc.any(pc.match_substring(texts, ",")).as_py()
    }  # fmt: skip
    sure = any(pc.any(pc.match_substring_regex(texts, _ONLY_COMMA)).as_py()
               for texts in numbers.values())  # fmt: skip
    return list(numbers) if sure else []


def date_formats(columns: Mapping[str, pa.Array]) -> dict[str, str]:
    """Return the formats of the columns that certainly hold dates (rule 5).

    Where one column of a table tells days from months, others with the same marks follow it.
    """
    possible = {name: list(_possible(texts)) for name, texts in columns.items() if len(texts)}
    sure = {name: formats[0] for name, formats in possible.items() if len(formats) == 1}
    days = {one.split()[0] for one in sure.values()}
    for name, formats in possible.items():
        known = [one for one in formats if one.split()[0] in days]
        if name not in sure and len(known) == 1:
            sure[name] = known[0]
    return sure


def _possible(texts: pa.Array) -> Iterator[str]:
    """Yield the formats of which all texts are dates."""
    if not pc.all(pc.match_substring_regex(texts, r"^\s*[0-9]{1,4}[/.-][0-9]{1,2}[/.-]")).as_py():
        return
    first = texts[0].as_py()
    for date_format in (day + time for day in _DAYS for time in _TIMES):
        if not _bytes_pattern(date_format).match(first):
            continue  # one text tells more quickly than all
        parts = pc.extract_regex(texts, date_pattern(date_format))
        if parts.null_count:
            continue
        day, month = (
            pc.struct_field(parts, one).cast(pa.string()).cast(pa.int32()) for one in "dm"
        )
        if pc.max(day).as_py() <= 31 and pc.max(month).as_py() <= 12:
            yield date_format


@functools.cache
def _bytes_pattern(date_format: str) -> re.Pattern[bytes]:
    return re.compile(date_pattern(date_format).encode())
