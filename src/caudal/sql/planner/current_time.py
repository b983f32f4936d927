"""The current time is replaced by one moment, so that every stage and every engine uses the same.

Rules
1. Calls (`now()`, `today()`, `age(x)` with one argument) always mean the current time. `ago(x)` is
   DuckDB's macro for the bare word `current_timestamp` minus an interval, so rule 2 holds for it.
   The name of a common table expression is no call: `WITH age(x) AS (...)`.
2. A bare word (`current_date`, `localtimestamp`) means a column, an item of the SELECT list or a
   parameter of a lambda of that name if DuckDB finds one. It is replaced only if the text is bound
   to the same plan with the function call in its place (`TextChecks.means_same`).
3. All of a query is frozen, or nothing: if a column inside of it would get another name
   (`kept_names.py`), or another type, the clock is left to DuckDB.
4. The time zone of every session is UTC, so dates and local times are those of UTC.
"""

from datetime import UTC, datetime

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from caudal.sql.planner.kept_names import items_around, may_show_names
from caudal.sql.planner.text_checks import Edit, TextChecks, edited

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
_MINUS = " - CAST(", " AS INTERVAL))"  # what the macro ago(x) does with x
_DEFINITIONS = ["as", "("], ["as", "materialized"], ["as", "not"], ["using", "key"]
NAMES = (*_BARE, *_FORMATS, "age", "ago")
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
    utc, edits, places = checks.moment.astimezone(UTC), list[Edit](), list[int]()
    for place in range(len(tokens)):
        if not _can_be_function(tokens, place):
            continue
        found = _call(tokens, place, utc, sql, checks) or _bare(tokens, place, utc, sql, checks)
        if found:
            edits += found
            places.append(place)
    if not edits:
        return sql
    changed: str | None = edited(sql, edits)
    if checks.change is not None and may_show_names(tokens):
        items = [item for place in places for item in items_around(tokens, place)]
        changed = checks.change(sql, edits, list(dict.fromkeys(items)))
    return changed if changed is not None and checks.is_valid(changed) else sql


def _can_be_function(tokens: list[Token], place: int) -> bool:
    if tokens[place].token_type in _NO_NAMES:
        return False
    return not place or tokens[place - 1].token_type not in (TokenType.DOT, TokenType.ALIAS)


def _call(
    tokens: list[Token], place: int, utc: datetime, sql: str, checks: TextChecks
) -> list[Edit]:
    name = tokens[place].text.lower()
    if place + 2 >= len(tokens) or tokens[place + 1].token_type != TokenType.L_PAREN:
        return []
    if _is_defined(tokens, place):
        return []
    if name in _FORMATS and tokens[place + 2].token_type == TokenType.R_PAREN:
        start, end = tokens[place].start, tokens[place + 2].end + 1
        return [Edit(start, end, _FORMATS[name].format(utc))]
    if name == "age" and _arguments(tokens, place + 1) == 1:
        inside = tokens[place + 1].end + 1
        return [Edit(inside, inside, _AGE.format(utc))]
    if name == "ago" and _arguments(tokens, place + 1) == 1:
        begun = _minus(tokens, place, f"{_BARE['current_timestamp']}()")
        if checks.means_same is None or checks.means_same(sql, edited(sql, begun)):
            return _minus(tokens, place, _FORMATS["now"].format(utc))
    return []


def _minus(tokens: list[Token], place: int, moment: str) -> list[Edit]:
    """Return the edits that write a call of `ago` as that moment minus its argument."""
    end = tokens[_closing(tokens, place + 1)].start
    first, last = _MINUS
    return [
        Edit(tokens[place].start, tokens[place + 1].end + 1, f"({moment}{first}"),
        Edit(end, end + 1, last),
    ]


def _is_defined(tokens: list[Token], place: int) -> bool:
    """Return whether a name with columns is that of a common table expression."""
    after = [token.text.lower() for token in tokens[_closing(tokens, place + 1) + 1 :][:2]]
    return after in _DEFINITIONS


def _closing(tokens: list[Token], opening: int) -> int:
    """Return the parenthesis that closes the one here; the last token if none does."""
    depth = 0
    for place in range(opening, len(tokens)):
        depth += tokens[place].token_type == TokenType.L_PAREN
        depth -= tokens[place].token_type == TokenType.R_PAREN
        if depth == 0:
            return place
    return len(tokens) - 1


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
) -> list[Edit]:
    function = _BARE.get(tokens[place].text.lower())
    if function is None:
        return []
    if place + 1 < len(tokens) and tokens[place + 1].token_type in (
        TokenType.L_PAREN, TokenType.DOT,
    ):  # fmt: skip
        return []
    first, after = tokens[place].start, tokens[place].end + 1
    called = f"{sql[:first]}{function}(){sql[after:]}"
    if checks.means_same is not None and not checks.means_same(sql, called):
        return []
    return [Edit(first, after, _FORMATS[function].format(utc))]
