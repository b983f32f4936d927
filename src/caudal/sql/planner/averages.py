"""Averages are written as sum over count, so that every engine computes the same value.

Only these tokens of the text change, and items inside of the query get the names they had
(`kept_names.py`). An average over a window stays, because it runs in one place in every engine. So
does an average of values that cannot be summed, such as dates: the checks say whether a changed
text is valid. So does one that changes the name of a column inside of the query.
"""

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from caudal.sql.planner.kept_names import items_around, may_show_names
from caudal.sql.planner.text_checks import Edit, TextChecks, edited

NAMES = ("avg", "mean")


def rewrite_averages(sql: str, checks: TextChecks) -> str:
    """Write every `avg(x)` as `(sum(x) / count(x))`, where that is valid.

    Example::

        before:
            SELECT shop, avg(paid) FILTER (WHERE id > 1) FROM sales GROUP BY shop
        after:
            SELECT shop, (sum(paid) FILTER (WHERE id > 1) / count(paid) FILTER (WHERE id > 1))
            FROM sales GROUP BY shop
    """
    skipped = 0
    while True:
        try:
            tokens = DuckDB().tokenize(sql)
        except TokenError:
            return sql
        found = [place for place in range(len(tokens)) if _is_mean(tokens, place)]
        if skipped >= len(found):
            return sql
        # An inner average comes after the outer one in the text, so it is rewritten first.
        changed = _rewritten_one(sql, tokens, found[-1 - skipped], checks)
        if changed is not None and checks.is_valid(changed):
            sql = changed
        else:
            skipped += 1


def _rewritten_one(sql: str, tokens: list[Token], place: int, checks: TextChecks) -> str | None:
    """Return the text with the average here rewritten; None if that changes names."""
    closing = _closing(tokens, place + 1)
    if closing is None:
        return None
    end = _filter_end(tokens, closing)
    after = sql[tokens[place + 1].start : tokens[end].end + 1]
    edits = [Edit(tokens[place].start, tokens[end].end + 1, f"(sum{after} / count{after})")]
    if checks.change is None or not may_show_names(tokens):
        return edited(sql, edits)
    return checks.change(sql, edits, items_around(tokens, place))


def _is_mean(tokens: list[Token], place: int) -> bool:
    if tokens[place].text.lower() not in NAMES or place + 1 >= len(tokens):
        return False
    if tokens[place + 1].token_type != TokenType.L_PAREN:
        return False
    if place and tokens[place - 1].token_type == TokenType.DOT:
        return False
    closing = _closing(tokens, place + 1)
    if closing is None:
        return False
    end = _filter_end(tokens, closing) + 1
    return end >= len(tokens) or tokens[end].token_type != TokenType.OVER


def _closing(tokens: list[Token], opening: int) -> int | None:
    depth = 0
    for place in range(opening, len(tokens)):
        if tokens[place].token_type == TokenType.L_PAREN:
            depth += 1
        elif tokens[place].token_type == TokenType.R_PAREN:
            depth -= 1
            if depth == 0:
                return place
    return None


def _filter_end(tokens: list[Token], closing: int) -> int:
    """Return the last token of `FILTER (...)` if it follows, else of the call itself."""
    following = closing + 1
    if following + 1 < len(tokens) and tokens[following].text.lower() == "filter":
        return _closing(tokens, following + 1) or closing
    return closing
