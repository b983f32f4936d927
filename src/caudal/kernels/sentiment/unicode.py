"""The few characters beyond ASCII that the tokeniser treats specially, as UTF-8 bytes."""

from typing import Any

from caudal.kernels.compiled import compiled


@compiled
def break_size(text: Any, position: int) -> int:
    """Return the bytes of the curly quote or space beyond ASCII that begins at `position`, or 0."""
    if is_curly_quote(text, position):
        return 3
    return int(space_size(text, position))


@compiled
def is_curly_quote(text: Any, position: int) -> bool:
    """U+2018, U+2019, U+201C and U+201D."""
    if text[position] != 0xE2 or text[position + 1] != 0x80:
        return False
    return text[position + 2] in (0x98, 0x99, 0x9C, 0x9D)


@compiled
def space_size(text: Any, position: int) -> int:
    """Return the bytes of the space beyond ASCII that begins at `position`, or 0.

    U+0085, U+00A0, U+1680, U+2000 to U+200A, U+2028, U+2029, U+202F, U+205F and U+3000.
    """
    lead, second, third = text[position], text[position + 1], text[position + 2]
    if lead == 0xC2:
        return 2 if second in (0x85, 0xA0) else 0
    if lead == 0xE2 and second == 0x80:
        return 3 if third <= 0x8A or third in (0xA8, 0xA9, 0xAF) else 0
    if lead == 0xE2 and second == 0x81:
        return 3 if third == 0x9F else 0
    if lead == 0xE1:
        return 3 if second == 0x9A and third == 0x80 else 0
    return 3 if lead == 0xE3 and second == 0x80 and third == 0x80 else 0


@compiled
def space_size_before(text: Any, position: int) -> int:
    """Return the bytes of the space beyond ASCII whose last byte is at `position`, or 0."""
    if space_size(text, position - 1) == 2:
        return 2
    return 3 if space_size(text, position - 2) == 3 else 0


@compiled
def ends_with_break(text: Any, position: int) -> bool:
    """Return whether a curly quote or a space beyond ASCII ends at `position`."""
    return bool(is_curly_quote(text, position - 2) or space_size_before(text, position) > 0)


@compiled
def changes_when_lowered(text: Any, position: int) -> bool:
    """U+0130 becomes two characters and U+212A (the Kelvin sign) becomes an ASCII k."""
    if text[position] == 0xC4:
        return bool(text[position + 1] == 0xB0)
    lead, second, third = text[position], text[position + 1], text[position + 2]
    return bool(lead == 0xE2 and second == 0x84 and third == 0xAA)


@compiled
def is_degree_face(text: Any, start: int, stop: int) -> bool:
    """Return whether text[start:stop] is a degree sign, alone or after an o, as in ``° o °``."""
    if text[stop - 2] != 0xC2 or text[stop - 1] != 0xB0:
        return False
    return stop - start == 2 or (text[start] | 0x20) == ord("o")
