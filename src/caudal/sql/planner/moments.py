"""`now()` and its kin, frozen to one moment, so that every stage and every engine sees the same."""

from datetime import UTC, datetime

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

_WITH_ZONE = ("now", "current_timestamp", "transaction_timestamp", "get_current_timestamp")
_DATES = ("current_date", "today")
_LOCAL = ("localtimestamp", "current_localtimestamp")
_BARE = ("current_timestamp", "current_date", "localtimestamp")


def frozen(sql: str, moment: datetime) -> str:
    """The query with calls for the current time replaced by literals (in UTC).

    >>> frozen("SELECT current_date, now FROM t", datetime(2026, 1, 2, tzinfo=UTC))
    "SELECT CAST('2026-01-02' AS DATE), now FROM t"
    """
    try:
        tokens = DuckDB().tokenize(sql)
    except TokenError:
        return sql
    changed = sql
    for place in reversed(range(len(tokens))):
        literal = _literal(tokens[place].text.lower(), moment)
        if literal is None or tokens[place].token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            continue
        if place and tokens[place - 1].token_type in (TokenType.DOT, TokenType.ALIAS):
            continue
        called = [t.token_type for t in tokens[place + 1 : place + 3]]
        is_call = called == [TokenType.L_PAREN, TokenType.R_PAREN]
        if not is_call and tokens[place].text.lower() not in _BARE:
            continue
        end = tokens[place + 2].end if is_call else tokens[place].end
        changed = changed[: tokens[place].start] + literal + changed[end + 1 :]
    return changed


def _literal(name: str, moment: datetime) -> str | None:
    utc = moment.astimezone(UTC)
    if name in _WITH_ZONE:
        return f"CAST('{utc:%Y-%m-%d %H:%M:%S.%f}+00' AS TIMESTAMP WITH TIME ZONE)"
    if name in _LOCAL:
        return f"CAST('{utc:%Y-%m-%d %H:%M:%S.%f}' AS TIMESTAMP)"
    if name in _DATES:
        return f"CAST('{utc:%Y-%m-%d}' AS DATE)"
    return None
