"""Opaque identifiers: random letters and digits of a fixed length."""

from functools import cache

import numpy as np
import pyarrow as pa

from caudal.generate import text
from caudal.generate.dice import Dice, Ints

_MIXED_CASE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_UPPER_CASE = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_HEXADECIMAL = "0123456789abcdef"
_POOL = 1 << 14


def image_paths(dice: Dice, label: str, index: Ints) -> pa.Array:
    """Return paths of pictures: a slash, 27 letters and digits, `.jpg`."""
    return text.concat("/", *_parts(dice, label, index, (_MIXED_CASE, 9), 3), ".jpg")


def volume_ids(dice: Dice, label: str, index: Ints) -> pa.Array:
    """Return twelve letters and digits, as in the links of a book catalogue."""
    return text.concat(*_parts(dice, label, index, (_MIXED_CASE, 6), 2))


def user_ids(dice: Dice, label: str, index: Ints) -> pa.Array:
    """Return fourteen capital letters and digits that begin with A."""
    return text.concat("A3", *_parts(dice, label, index, (_UPPER_CASE, 6), 2))


def credit_ids(dice: Dice, label: str, index: Ints) -> pa.Array:
    """Return 24 hexadecimal digits with a common middle part, as in most credits."""
    first, last = _parts(dice, label, index, (_HEXADECIMAL, 5), 2)
    return text.concat("52f", first, "c3a36847f80", last)


def isbns(dice: Dice, label: str, index: Ints) -> pa.Array:
    """Return ISBNs of ten digits, the last sometimes an X, or a B-number instead."""
    first = text.take(_pool("0123456789", 5), dice.below(f"{label}/0", index, _POOL))
    last = text.take(_pool("0123456789", 4), dice.below(f"{label}/1", index, _POOL))
    check = text.take(text.pool("0123456789X"), dice.below(f"{label}/2", index, 11))
    return text.concat(
        text.either(dice.one_in(f"{label}/old", index, 4), "B000H", first), last, check
    )


def _parts(
    dice: Dice, label: str, index: Ints, kind: tuple[str, int], count: int
) -> list[pa.Array]:
    strings = _pool(*kind)
    return [text.take(strings, dice.below(f"{label}/{i}", index, _POOL)) for i in range(count)]


@cache
def _pool(alphabet: str, length: int) -> pa.Array:
    index = np.arange(_POOL * length, dtype=np.int64)
    drawn = Dice(0).below(f"tokens/{alphabet}/{length}", index, len(alphabet))
    letters = "".join(alphabet[i] for i in drawn.tolist())
    return text.pool(letters[i : i + length] for i in range(0, len(letters), length))
