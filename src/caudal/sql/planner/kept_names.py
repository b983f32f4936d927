"""The items of a SELECT that a text rule must name, because it changes their text.

DuckDB calls an item without a name like its text: `avg(price)`. The engines give the columns of an
answer their names, but a SELECT inside of a query may show its names too (`UNPIVOT`, `to_json`,
`NATURAL JOIN`, `DESCRIBE`). So an item there gets the name it had: `(sum(price) / count(price)) AS
"avg(price)"`. What is found here is a proposal: DuckDB's parse trees say whether names are kept
(`duck/kept_names.py`).
"""

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from caudal.sql.planner.text_checks import SelectItem

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
_ENDS = frozenset(
    ["from", "where", "group", "having", "window", "qualify", "order", "limit", "offset", "union",
     "except", "intersect", "using", "tablesample", ";"]
)  # fmt: skip
_QUERIES = ("select", "from", "with", "(")  # the first word of a query in parentheses
_SHOWING = frozenset(  # NAME is that of UNION BY NAME
    ["pivot", "pivot_wider", "pivot_longer", "unpivot", "describe", "summarize", "show", "name"]
)


def may_show_names(tokens: Sequence[Token]) -> bool:
    """Return whether a query may have columns that are not those of its answer."""
    words = [_word(token) for token in tokens]
    inner = any(
        token.token_type in _OPENING and word in _QUERIES
        for token, word in zip(tokens, words[1:], strict=False)
    )
    return inner or not _SHOWING.isdisjoint(words)


def items_around(tokens: Sequence[Token], place: int) -> list[SelectItem]:
    """Return the items that a token is in, of SELECTs in parentheses."""
    found = list[SelectItem]()
    while (opening := _opening(tokens, place)) is not None:
        if _word(tokens[opening + 1]) in _QUERIES:
            item = _item(tokens, opening, place)
            if item is not None:
                found.append(item)
        place = opening
    return found


def _opening(tokens: Sequence[Token], place: int) -> int | None:
    """Return the bracket that a token is directly inside of."""
    depth = 0
    for at in range(place - 1, -1, -1):
        if tokens[at].token_type in _CLOSING:
            depth += 1
        elif tokens[at].token_type in _OPENING:
            if depth == 0:
                return at
            depth -= 1
    return None


def _item(tokens: Sequence[Token], opening: int, place: int) -> SelectItem | None:
    """Return the item of a SELECT list, directly in these brackets, that the token is in."""
    words = _directly_in(tokens, opening)
    own = max(at for at, (number, _) in enumerate(words) if number <= place)
    first = own
    while first > 0 and not _is_border(words, first - 1):
        first -= 1
    if first == 0:  # a query in further parentheses
        return None
    before = first - 1
    while words[before][1] == ",":
        before -= 1
        while before >= 0 and not _is_border(words, before):
            before -= 1
        if before < 0:
            return None
    if words[before][1] != "select":
        return None
    if words[first][1] == "distinct":
        first += 3 if words[first + 1][1] == "on" else 1
    elif words[first][1] == "all":
        first += 1
    last = max(own, first)
    while last + 1 < len(words) and not _is_border(words, last + 1):
        last += 1
    start, (number, _) = tokens[words[first][0]].start, words[last]
    end = tokens[_closing(tokens, number)].end + 1
    return SelectItem(start, end)


def _directly_in(tokens: Sequence[Token], opening: int) -> list[tuple[int, str]]:
    """Return the tokens directly in brackets; brackets among them stand for what is in them."""
    words = list[tuple[int, str]]()
    at = opening + 1
    while at < len(tokens) and tokens[at].token_type not in _CLOSING:
        words.append((at, _word(tokens[at])))
        at = _closing(tokens, at) + 1
    return words


def _word(token: Token) -> str:
    """Return a keyword or name in small letters; of GROUP BY the first word."""
    if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
        return ""
    return token.text.lower().split(" ")[0]


def _closing(tokens: Sequence[Token], at: int) -> int:
    """Return the bracket that closes the one here; the token itself if it is no bracket."""
    depth = 0
    for number in range(at, len(tokens)):
        if tokens[number].token_type in _OPENING:
            depth += 1
        elif tokens[number].token_type in _CLOSING:
            depth -= 1
        if depth == 0:
            return number
    return len(tokens) - 1


def _is_border(words: Sequence[tuple[int, str]], at: int) -> bool:
    """Return whether a SELECT list or one of its items begins behind this word or ends before."""
    if at < 0:
        return False
    word = words[at][1]
    if word == "from" and at >= 1 and words[at - 1][1] == "distinct":
        return at < 2 or words[at - 2][1] not in ("is", "not")  # IS NOT DISTINCT FROM
    return word in (",", "select") or word in _ENDS
