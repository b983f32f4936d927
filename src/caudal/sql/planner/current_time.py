"""The current time is replaced by one moment, so that every stage and every engine uses the same.

Rules
1. Calls (`now()`, `today()`, `age(x)` with one argument) always mean the current time.
2. A bare word (`current_date`, `localtimestamp`) means a column of that name if DuckDB finds one.
   It is replaced only if the text has the same plan with the function call in its place
   (`TextChecks.means_same`).
3. The time zone of every session is UTC, so dates and local times are those of UTC.
"""

from datetime import UTC, datetime

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from caudal.sql.planner.text_checks import TextChecks

_BARE = {
    "current_timestamp": "get_current_timestamp", "current_date": "current_date",
    "current_time": "get_current_time", "localtime": "current_localtime",
    "localtimestamp": "current_localtimestamp",
}  # fmt: skip
_FORMATS = {
    **dict.fromkeys(
        ("now", "transaction_timestamp", "get_current_timestamp"),
        "CAST('{:%Y-%m-%d %H:%M:%S.%f}+00' AS TIMESTAMP WITH TIME ZONE)",
    ),
    **dict.fromkeys(("today", "current_date"), "CAST('{:%Y-%m-%d}' AS DATE)"),
    "current_localtimestamp": "CAST('{:%Y-%m-%d %H:%M:%S.%f}' AS TIMESTAMP)",
    "current_localtime": "CAST('{:%H:%M:%S.%f}' AS TIME)",
    "get_current_time": "CAST('{:%H:%M:%S.%f}+00' AS TIME WITH TIME ZONE)",
}
_AGE = "CAST('{:%Y-%m-%d}' AS TIMESTAMP), "  # age(x) is the time from x to the current day
NAMES = (*_BARE, *_FORMATS, "age")
_NO_NAMES = (TokenType.STRING, TokenType.IDENTIFIER)


def freeze_current_time(sql: str, checks: TextChecks) -> str:
    """Replace the current time by literals of one moment.

    Example::

        before:
            SELECT id FROM sales WHERE day < current_date
        after:
            SELECT id FROM sales WHERE day < CAST('2026-01-02' AS DATE)
    """
    if checks.moment is None:
        return sql
    try:
        tokens = DuckDB().tokenize(sql)
    except TokenError:
        return sql
    utc, changed = checks.moment.astimezone(UTC), sql
    for place in reversed(range(len(tokens))):
        if not _can_be_function(tokens, place):
            continue
        found = _call(tokens, place, utc) or _bare(tokens, place, utc, sql, checks)
        if found is not None:
            first, after, literal = found
            changed = changed[:first] + literal + changed[after:]
    return changed


Replacement = tuple[int, int, str]  # start, end (not included), new text


def _can_be_function(tokens: list[Token], place: int) -> bool:
    if tokens[place].token_type in _NO_NAMES:
        return False
    return not place or tokens[place - 1].token_type not in (TokenType.DOT, TokenType.ALIAS)


def _call(tokens: list[Token], place: int, utc: datetime) -> Replacement | None:
    name = tokens[place].text.lower()
    if place + 2 >= len(tokens) or tokens[place + 1].token_type != TokenType.L_PAREN:
        return None
    if name in _FORMATS and tokens[place + 2].token_type == TokenType.R_PAREN:
        return tokens[place].start, tokens[place + 2].end + 1, _FORMATS[name].format(utc)
    if name == "age" and _arguments(tokens, place + 1) == 1:
        inside = tokens[place + 1].end + 1
        return inside, inside, _AGE.format(utc)
    return None


def _arguments(tokens: list[Token], opening: int) -> int:
    """Return the number of arguments in the parentheses that open here."""
    depth, commas = 0, 0
    for token in tokens[opening:]:
        if token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE):
            depth += 1
        elif token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE):
            depth -= 1
            if depth == 0:
                break
        commas += depth == 1 and token.token_type == TokenType.COMMA
    return commas + (tokens[opening + 1].token_type != TokenType.R_PAREN)


def _bare(
    tokens: list[Token], place: int, utc: datetime, sql: str, checks: TextChecks
) -> Replacement | None:
    function = _BARE.get(tokens[place].text.lower())
    if function is None:
        return None
    if place + 1 < len(tokens) and tokens[place + 1].token_type in (
        TokenType.L_PAREN, TokenType.DOT,
    ):  # fmt: skip
        return None
    first, after = tokens[place].start, tokens[place].end + 1
    called = f"{sql[:first]}{function}(){sql[after:]}"
    if checks.means_same is not None and not checks.means_same(sql, called):
        return None
    return first, after, _FORMATS[function].format(utc)
