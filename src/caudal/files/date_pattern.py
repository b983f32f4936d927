"""The formats of dates that can be said of a file, and what texts have them."""

import re

from caudal.errors import UsageError

_DIRECTIVES = {
    "%d": r"(?P<d>[0-9]{1,2})",
    "%m": r"(?P<m>[0-9]{1,2})",
    "%Y": r"(?P<Y>[0-9]{4})",
    "%y": r"(?P<y>[0-9]{2})",
    "%H": r"(?P<H>[0-9]{1,2})",
    "%M": r"(?P<M>[0-9]{2})",
    "%S": r"(?P<S>[0-9]{2})",
    "%f": r"(?P<f>[0-9]{1,6})",
}


def date_pattern(date_format: str) -> str:
    """Return a pattern for texts of this format; raise UsageError for a format without a day."""
    pattern, seen = "", []
    for part in re.findall(r"%.|[^%]", date_format):
        if part in _DIRECTIVES and part not in seen:
            pattern += _DIRECTIVES[part]
            seen.append(part)
        elif part.startswith("%"):
            raise UsageError(
                f"date format {date_format!r}: {part} is not known or stands twice; known are "
                f"{' '.join(_DIRECTIVES)}"
            )
        else:
            pattern += re.escape(part)
    kinds = {one[1] for one in seen}
    complete = {"d", "m"} <= kinds and len(kinds & {"Y", "y"}) == 1
    if not complete or ("H" in kinds) != ("M" in kinds) or ("f" in kinds and "S" not in kinds):
        raise UsageError(f"date format {date_format!r}: it needs day, month and year: %d/%m/%Y")
    return rf"^\s*{pattern}\s*$"
