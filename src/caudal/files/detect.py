"""How a text file is written: found in its first bytes where that is certain.

Rules. What is not certain is read as usual: UTF-8, commas, a header in the first line.
1. Encoding: a byte order mark decides. Without one, a text in which every other byte is zero is
   UTF-16. A text that is not UTF-8 is cp1252 if it has no sequence of UTF-8 beyond ASCII at all,
   and all its other characters are letters of western Europe inside words of mostly ASCII letters,
   or usual punctuation. Otherwise it is UTF-8 with damage: its broken characters are counted.
2. Delimiter: comma, semicolon, tab or bar. One fits if the header has two fields or more, and all
   records among the first have as many. The only one that fits is taken. Comma is preferred.
3. Lines before the header: they have one field only, or begin with `#`; then follows a record with
   names (rule 4), and all later records have as many fields.
4. Names: a record is certainly a header if in some column all records behind it are numbers or
   dates, and it is neither. The first record is certainly none if in every such column it is one
   too, unless those are years, or numbers that count up, as names of columns may be.
5. A delimiter behind the last field of every record, but not of the header, is no field.
6. The second column called `id` is `id_2`, and so is `ID`, which SQL does not tell from `id`. This
   and everything else that was found is noted.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from caudal.errors import DataError
from caudal.files.first_records import FirstRecord, first_records
from caudal.model import Reading

MOST_SAMPLE_BYTES = 16 << 20  # until the header ends
_DELIMITERS = ",;\t|"
_VALUE = re.compile(
    r"\s*([+-]?[0-9][0-9.,]*([eE][+-]?[0-9]+)?"
    r"|[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([ T].*)?)\s*"
)
_SHOWN = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas"}


@dataclass(frozen=True)
class Form:
    """How a text is written. A usual one is CSV as it is, with its names in the first line."""

    delimiter: str = ","
    quote: str = '"'
    comment: str | None = None
    names: tuple[str, ...] = ()
    skip: int = 0  # lines before the first row
    before: int = 0  # lines before the header; without one, before the first row
    has_header: bool = True
    is_usual: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RecordLayout:
    """Which record is the header, the names of the columns, and the first record of data."""

    names: tuple[str, ...]
    first: int  # number of the first record of data
    has_header: bool
    is_usual: bool  # the header is the first record, and its names are as they stand
    notes: tuple[str, ...] = ()


def detect(sample: bytes, reading: Reading, *, final: bool) -> Form | None:
    """Return the form of a UTF-8 text from its first bytes; None if more are needed."""
    text = sample.removeprefix(b"\xef\xbb\xbf")
    start = _after_lines(text, reading.skip or 0)
    body = _without_comments(text[start:], reading.comment)
    quote = '"' if reading.quote is None else reading.quote
    choices = [reading.delimiter] if reading.delimiter else list(_DELIMITERS)
    found = _records_by_delimiter(body, choices, quote, final=final)
    if not final and any(not records for records in found.values()):
        return None
    delimiter, notes = _choose(found)
    records = found[delimiter]
    if not records:
        return Form(delimiter, quote, reading.comment)
    layout = lay_out([one.fields for one in records], reading)
    after = [0, *(one.after for one in records)]
    before = layout.first - layout.has_header
    is_plain = (delimiter, quote) == (",", '"') and reading.comment is None and not reading.skip
    return Form(
        delimiter,
        quote,
        reading.comment,
        layout.names,
        skip=text[: start + after[layout.first]].count(b"\n"),
        before=text[: start + after[before]].count(b"\n"),
        has_header=layout.has_header,
        is_usual=is_plain and layout.is_usual,
        notes=(*notes, *layout.notes),
    )


def _after_lines(text: bytes, count: int) -> int:
    place = 0
    for _ in range(count):
        place = text.find(b"\n", place) + 1
        if not place:
            return len(text)
    return place


def _without_comments(text: bytes, comment: str | None) -> bytes:
    """Blank the comment lines of a sample; their bytes stay, so that places do not change."""
    if comment is None:
        return text
    pattern = re.compile(rb"(?m)^" + re.escape(comment.encode()) + rb"[^\n]*")
    return pattern.sub(lambda found: b"\r" * len(found[0]), text)


def _records_by_delimiter(
    text: bytes, choices: Sequence[str], quote: str, *, final: bool
) -> dict[str, list[FirstRecord]]:
    """Return the first records as each delimiter gives them.

    If a header in the first record fits the comma, another delimiter fits as well only if it also
    cuts the first record. If it does not, its other records are not read.
    """
    found: dict[str, list[FirstRecord]] = {}
    for one in choices:
        records = first_records(text, one, quote, final=final)
        first = list(itertools.islice(records, 1))
        fits = any(_header_at([r.fields for r in others]) == 0 for others in found.values())
        decided = fits and first and first[0].width < 2
        found[one] = first if decided else [*first, *records]
    return found


def _choose(found: dict[str, list[FirstRecord]]) -> tuple[str, tuple[str, ...]]:
    """Rule 2: the delimiter, and what to tell of it."""
    if len(found) == 1:
        return next(iter(found)), ()
    headers = {one: _header_at([r.fields for r in records]) for one, records in found.items()}
    fitting = [one for one, at in headers.items() if at == 0] or [
        one for one, at in headers.items() if at is not None
    ]
    if not fitting or fitting == [","]:
        return ",", ()
    chosen = "," if "," in fitting else fitting[0]
    told = f"fields are separated by {_SHOWN[chosen]}"
    if len(fitting) > 1:
        told += f" (by {' or '.join(_SHOWN[one] for one in fitting if one != chosen)} too?)"
    return chosen, (told,)


def _header_at(records: Sequence[tuple[str, ...]]) -> int | None:
    """Return the number of the header, if the records behind it have as many fields (rule 2)."""
    widths = [len(one) for one in records]
    if not widths:
        return None
    noted = next((at for at, one in enumerate(records) if not one or one[0][:1] != "#"), 0)
    if noted and widths[noted] >= 2 and _names_columns(records[noted], records[noted + 1 :]):
        return noted if _mostly(widths[noted:], widths[noted]) else None
    if widths[0] >= 2 and (_mostly(widths[1:], widths[0]) or _has_trailing(records)):
        return 0
    usual = max(set(widths), key=widths.count)
    at = widths.index(usual)
    before = records[:at]
    if usual < 2 or any(len(one) > 1 for one in before) or not _mostly(widths[at:], usual):
        return None
    return at if _names_columns(records[at], records[at + 1 :]) else None


def _mostly(widths: Sequence[int], usual: int) -> bool:
    """Whether records have as many fields; few have others, and most are not damaged."""
    others = sum(width not in (0, usual) for width in widths)
    return 10 * others <= len(widths) and 2 * sum(width == 0 for width in widths) <= len(widths)


def _has_trailing(records: Sequence[tuple[str, ...]]) -> bool:
    """Rule 5."""
    width, body = len(records[0]), records[1:]
    return bool(body) and width >= 2 and all(
        len(one) == width + 1 and not one[-1] for one in body
    )  # fmt: skip


def lay_out(records: Sequence[tuple[str, ...]], reading: Reading) -> RecordLayout:
    """Find the header and the names among the first records (rules 3 to 6)."""
    at, notes = 0, []
    if reading.skip is None and reading.header is not False:
        at = _header_at(records) or 0
    head, body = records[at], records[at + 1 :]
    has_header = _has_header(head, body) if reading.header is None else reading.header
    if at:
        notes.append(f"{at} {'line' if at == 1 else 'lines'} before the header left out")
    names = [*head] if has_header else [f"column{place + 1}" for place in range(len(head))]
    if has_header and _has_trailing(records[at:]):
        names.append("")
        notes.append("the last delimiter of every row is not followed by a field")
    if not has_header and reading.names is None and reading.header is None:
        notes.append(f"there is no header: columns are column1 to column{len(names)}")
    if reading.names is not None:
        names = _given_names(reading.names, len(names))
    unique = unique_names(names)
    renamed = [f"{new!r}" for old, new in zip(names, unique, strict=True) if old != new]
    if renamed:
        notes.append(f"columns with the same name are called {', '.join(renamed)}")
    if any("\r" in name.replace("\r\n", "") for name in head):
        raise DataError("its lines end with \\r alone: convert them to \\n")
    usual = has_header and not at and list(unique) == [*head]
    return RecordLayout(unique, at + has_header, has_header, usual, tuple(notes))


def _given_names(given: Sequence[str], width: int) -> list[str]:
    if len(given) != width:
        raise DataError(f"it has {width} columns, but {len(given)} names are given")
    return list(given)


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names; each that stood before, for SQL, gets a number (rule 6)."""
    seen: set[str] = set()
    unique = []
    for name in names:
        new, number = name, 2
        while name and new.lower() in seen:
            new, number = f"{name}_{number}", number + 1
        seen.add(new.lower())
        unique.append(new)
    return tuple(unique)


def _value_columns(body: Sequence[tuple[str, ...]], width: int) -> list[int]:
    """Return the columns in which every field is a number or a date, if there is any field."""
    sound = [one for one in body if len(one) >= width]
    columns = []
    for place in range(width):
        texts = [one[place] for one in sound if one[place]]
        if texts and all(_VALUE.fullmatch(text) for text in texts):
            columns.append(place)
    return columns


def _names_columns(head: tuple[str, ...], body: Sequence[tuple[str, ...]]) -> bool:
    """Whether a record is certainly a header (rule 4)."""
    columns = _value_columns(body, len(head))
    return all(head) and any(not _VALUE.fullmatch(head[place]) for place in columns)


def _has_header(head: tuple[str, ...], body: Sequence[tuple[str, ...]]) -> bool:
    """Whether the first record is a header, or may be one (rule 4)."""
    columns = _value_columns(body, len(head))
    values = [head[place] for place in columns if head[place]]
    if not values or not all(_VALUE.fullmatch(text) for text in values):
        return True
    if not all(re.fullmatch(r"[0-9]{1,9}", text) for text in values):
        return False
    numbers = [int(text) for text in values]
    counts_up = len(numbers) > 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    return counts_up or all(1000 <= number < 3000 for number in numbers)
