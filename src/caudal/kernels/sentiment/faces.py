"""Faces and the sarcasm mark, whose pieces the tokeniser splits and then glues together again.

Gluing ignores the spaces between pieces, so a face is found by looking back from its last
character over the bytes before, skipping whitespace: the longest face that ends here is the one
that begins first, which is the one the analyzer takes. Bytes before `floor` belong to a face
that is already complete.
"""

from typing import Any

import numpy as np

from caudal.kernels.compiled import compiled, inlined
from caudal.kernels.sentiment import tables
from caudal.kernels.sentiment.unicode import ends_with_break, space_size, space_size_before

NO_FACE, DECLINED, ABSORBED = -1, -2, -3
"""ABSORBED: the face was glued to the word before it (``1998`` and ``)``): an unknown token."""

_TOO_FAR = -1
_MOST_MARKS = 256

_NEWLINE, _PERIOD, _COLON = ord("\n"), ord("."), ord(":")
_OPEN, _CLOSE, _EXCLAMATION = ord("("), ord(")"), ord("!")


@inlined
def is_whitespace(byte: int) -> bool:
    return byte == 32 or 9 <= byte <= 13 or 28 <= byte <= 31


@compiled
def previous_visible(text: Any, position: int) -> int:
    """Return the position of the last byte before `position` that belongs to no space."""
    position -= 1
    while True:
        if is_whitespace(text[position]):
            position -= 1
        elif text[position] >= 0x80 and space_size_before(text, position):
            position -= space_size_before(text, position)
        else:
            return position


@compiled
def next_visible(text: Any, position: int) -> int:
    """Return the first byte after `position` that belongs to no space; a zero byte ends the row."""
    position += 1
    while True:
        if is_whitespace(text[position]):
            position += 1
        elif text[position] >= 0x80 and space_size(text, position):
            position += space_size(text, position)
        else:
            return int(text[position])


@compiled
def is_sarcasm(text: Any, position: int) -> bool:
    """Return whether the exclamation mark at `position` stands alone in parentheses."""
    if next_visible(text, position) != _CLOSE:
        return False
    return bool(text[previous_visible(text, position)] == _OPEN)


@compiled
def find_face(text: Any, position: int, floor: int, t: Any) -> Any:
    """Return the entry and size of the face that ends at `position`, or why there is none."""
    key, length = np.uint64(text[position]), np.int64(1)
    face, size, begin, start = NO_FACE, length, position, position
    has_empty_line = is_parted = False
    while length < tables.MAX_FACE:
        before = previous_visible(text, start)
        if before < floor or not t.kind[text[before]] & tables.FACE_INNER:
            break
        has_empty_line = has_empty_line or count_newlines(text, before + 1, start) > 1
        key |= np.uint64(text[before]) << np.uint64(8 * length)
        length += 1
        start = before
        found = find_face_key(key, t)
        if found >= 0:
            face, size, begin, is_parted = found, length, start, has_empty_line
    if face == NO_FACE:
        return NO_FACE, size
    if is_parted:
        return DECLINED, size
    return settle_face(text, begin, position, size, t.face_entries[face], t)


@compiled
def find_face_key(key: int, t: Any) -> int:
    for index in range(tables.FACE_COUNT):
        if t.face_keys[index] == key:
            return index
    return NO_FACE


@compiled
def settle_face(text: Any, begin: int, position: int, size: int, entry: int, t: Any) -> Any:
    """Decide about a found face: it may continue, or be joined to the word before it."""
    opening = text[begin]
    if opening == ord("8") or opening == ord(">"):
        if size == 3 and text[previous_visible(text, position)] == _PERIOD:
            return DECLINED, size
        begins = begins_token(text, begin, t)
        if begins == _TOO_FAR:
            return DECLINED, size
        if begins:
            return entry, size
        may_end_face = opening == ord(">") and text[begin - 1] in (_PERIOD, _COLON)
        return DECLINED if may_end_face else ABSORBED, size
    if opening not in (_COLON, ord(";"), ord("="), ord("*")) or text[position] == _PERIOD:
        return DECLINED, size
    if text[position] == _OPEN and next_visible(text, position) == _EXCLAMATION:
        return DECLINED, size
    goes_on = size == 2 and opening == _COLON and text[position] in (ord("o"), ord("c"))
    if goes_on and next_visible(text, position) == _CLOSE:
        return NO_FACE, size
    if size == 3 and text[position] == _CLOSE:
        middle = text[previous_visible(text, position)]
        if middle in (ord("o"), ord("c")) and begins_token(text, begin, t) != 1:
            return DECLINED, size
    return entry, size


@compiled
def begins_token(text: Any, position: int, t: Any) -> int:
    """Return 1 if only punctuation that is split off is before `position` in its chunk, else 0;
    _TOO_FAR if there is too much of it to look at for every face."""
    position -= 1
    farthest = position - _MOST_MARKS
    while t.kind[text[position]] & tables.SPLIT and not t.kind[text[position]] & tables.SEPARATOR:
        if position == farthest:
            return _TOO_FAR
        position -= 1
    if text[position] >= 0x80:
        return 1 if ends_with_break(text, position) else 0
    return 1 if text[position] == 0 or t.kind[text[position]] & tables.SEPARATOR != 0 else 0


@inlined
def count_newlines(text: Any, start: int, stop: int) -> int:
    newlines = 0
    for position in range(start, stop):
        newlines += text[position] == _NEWLINE
    return newlines
