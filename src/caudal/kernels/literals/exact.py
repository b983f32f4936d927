"""The slow reader: it uses `ast.literal_eval`, for texts that the fast reader does not know.

Rules:
- What `ast.literal_eval` refuses, and what is not a list, is None.
- A text longer than MAX_BYTES is None: the syntax tree takes hundreds of bytes per byte of text.
- Strings may hold lone surrogates (`'\\ud83d'`), which UTF-8 cannot: each becomes U+FFFD.
- Python warns of `'\\d'` when it parses it. The warning is silenced, because as an error it would
  turn a valid text into an invalid one: the answer must not depend on the process's filters.
"""

import ast
import re
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence

MAX_BYTES = 1 << 20

_REFUSALS = (
    ValueError,
    SyntaxError,
    TypeError,
    OverflowError,
    MemoryError,
    RecursionError,
)
_SHORT = 1 << 12  # characters, for which any parser is quick
_PREFIXES = frozenset(["r", "u", "b", "br", "rb"])  # of the strings that a literal may hold
# Strings with letters before them; comments; quotes that never close. No possessive repeats: in
# Python 3.11.2, that of Debian 12, those of a group miss matches.
_TOKENS = re.compile(
    r"([A-Za-z]{0,3})(?:"
    r"'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''"
    r'|"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""'
    r"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*")'
    r"|\#[^\n]*|(['\"])",
    re.DOTALL,
)
_SURROGATES = re.compile("[\ud800-\udfff]")
# Warning filters belong to the process, so only one thread at a time may set them aside.
_FILTERS = threading.Lock()


def items_of(elements: Sequence[object]) -> list[str]:
    """Return the strings among the elements of a list."""
    return [_storable(element) for element in elements if isinstance(element, str)]


def names_of(elements: Sequence[object]) -> list[str]:
    """Return the strings under the key `name` in the dicts among the elements of a list."""
    return items_of([element.get("name") for element in elements if isinstance(element, dict)])


def read_lists(texts: Iterable[str]) -> Iterator[list[object] | None]:
    """Yield the list of each text, or None; one at a time, because lists may be large."""
    return (_read_list(text) for text in texts)


def _read_list(text: str) -> list[object] | None:
    if len(text.encode()) > MAX_BYTES or _has_odd_prefix(text):
        return None
    try:
        with _FILTERS, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            literal = ast.literal_eval(text)
    except _REFUSALS:
        return None
    return literal if isinstance(literal, list) else None


def _has_odd_prefix(text: str) -> bool:
    """Return whether a long text holds an f-string or an unclosed string: then it is no literal.
    Python needs minutes to parse a long f-string, and blocks all threads meanwhile."""
    if len(text) <= _SHORT:
        return False
    for found in _TOKENS.finditer(text):
        prefix, open_quote = found.groups()
        if open_quote or (prefix and prefix.lower() not in _PREFIXES):
            return True
    return False


def _storable(text: str) -> str:
    return _SURROGATES.sub("\ufffd", text)
