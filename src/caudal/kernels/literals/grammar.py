"""The small grammar of the fast reader, as two tables: byte to kind of token, and what may follow.

    text    := list                                    nested at most MAX_DEPTH deep
    list    := '[' (value (',' value)* ','?)? ']'
    dict    := '{' (key ':' value (',' key ':' value)* ','?)? '}'
    value   := string | scalar | list | dict
    key     := string | scalar                         always hashable, so always allowed
    string  := one pair of ' or ", no prefix, no control characters, escapes as in `escapes`
    scalar  := None | True | False | '-'? decimal integer or float

Blanks (space, tab, newline) may stand between tokens. Every text of this grammar means to
`ast.literal_eval` what it means here; what is outside of it is for `exact` to decide.
"""

import numpy as np
from numpy.typing import NDArray

MAX_DEPTH = 32

# Kinds of token, told by the first byte.
BLANK, STRING, SCALAR, OPEN_LIST, OPEN_DICT, CLOSE_LIST, CLOSE_DICT, COMMA, COLON, OTHER = range(10)

# States: what was read last in the innermost container.
LIST_OPENED, LIST_VALUE, LIST_COMMA, DICT_OPENED, DICT_KEY, DICT_COLON, DICT_VALUE, DICT_COMMA = (
    range(8)
)
REFUSED = -1

_FIRST_BYTES = {
    BLANK: b" \t\n",
    STRING: b"'\"",
    SCALAR: b"-0123456789NTF",
    OPEN_LIST: b"[",
    OPEN_DICT: b"{",
    CLOSE_LIST: b"]",
    CLOSE_DICT: b"}",
    COMMA: b",",
    COLON: b":",
}
_VALUES = (STRING, SCALAR, OPEN_LIST, OPEN_DICT)
_FOLLOWING = {
    LIST_VALUE: ((LIST_OPENED, LIST_COMMA), _VALUES),
    LIST_COMMA: ((LIST_VALUE,), (COMMA,)),
    DICT_KEY: ((DICT_OPENED, DICT_COMMA), (STRING, SCALAR)),
    DICT_COLON: ((DICT_KEY,), (COLON,)),
    DICT_VALUE: ((DICT_COLON,), _VALUES),
    DICT_COMMA: ((DICT_VALUE,), (COMMA,)),
}
_CLOSING = {
    CLOSE_LIST: (LIST_OPENED, LIST_VALUE, LIST_COMMA),
    CLOSE_DICT: (DICT_OPENED, DICT_VALUE, DICT_COMMA),
}


def _kinds() -> NDArray[np.int8]:
    kinds = np.full(256, OTHER, np.int8)
    for kind, first_bytes in _FIRST_BYTES.items():
        kinds[list(first_bytes)] = kind
    return kinds


def _next_states() -> NDArray[np.int8]:
    """Return the state after a token, by state and kind.

    After an opening bracket it is the state of the outer container once the inner one has closed.
    After a closing bracket it is only a mark that the bracket may stand there.
    """
    states = np.full((8, 10), REFUSED, np.int8)
    for following, (before, kinds) in _FOLLOWING.items():
        for state in before:
            states[state, list(kinds)] = following
    for kind, before in _CLOSING.items():
        states[list(before), kind] = LIST_VALUE
    return states


KINDS = _kinds()
NEXT_STATES = _next_states()
