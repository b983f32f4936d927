"""XXH64 with the kind of a value as its seed, over whole columns.

The loops differ only in where the bytes come from: from memory, from one word, or from a number
of 128 bits and its scale.
"""

import numpy as np
from numpy.typing import NDArray

from caudal.kernels.compiled import compiled, entry
from caudal.kernels.declaring import INT, Array, filled
from caudal.kernels.memory import byte_at, quad_at, word_at

NULL = 0

Words = NDArray[np.uint64]
Valid = NDArray[np.bool_]
Word = np.uint64

_PRIME_1 = Word(0x9E3779B185EBCA87)
_PRIME_2 = Word(0xC2B2AE3D27D4EB4F)
_PRIME_3 = Word(0x165667B19E3779F9)
_PRIME_4 = Word(0x85EBCA77C2B2AE63)
_PRIME_5 = Word(0x27D4EB2F165667C5)
_ZERO, _ONE, _TEN = Word(0), Word(1), Word(10)
_LOW_HALF = Word(0xFFFFFFFF)


def hash_spans(addresses: NDArray[np.int64], valid: Valid, kind: int) -> Words:
    """Hash the bytes in memory from each address to the next; NULL where not valid."""
    hashes = np.empty(len(valid), np.uint64)
    _fill_from_spans(addresses, valid, kind, hashes)
    return hashes


def hash_words(words: Words, valid: Valid, kind: int) -> Words:
    """Hash the eight bytes of each word; NULL where not valid."""
    hashes = np.empty(len(valid), np.uint64)
    _fill_from_words(words, valid, kind, hashes)
    return hashes


def hash_numbers(low: Words, high: Words, valid: Valid, scale: int, kind: int) -> Words:
    """Hash numbers of 128 bits with a scale, trailing zeros removed; NULL where not valid."""
    hashes = np.empty(len(valid), np.uint64)
    _fill_from_numbers(low, high, valid, scale, kind, hashes)
    return hashes


@entry(Array("i8"), Array("?"), INT, filled("u8"))
def _fill_from_spans(addresses: NDArray[np.int64], valid: Valid, kind: int, hashes: Words) -> None:
    null, seed = _hash_of_null(), Word(kind)
    for i in range(len(valid)):
        hashes[i] = _hash_bytes(addresses[i], addresses[i + 1], seed) if valid[i] else null


@entry(Array("u8"), Array("?"), INT, filled("u8"))
def _fill_from_words(words: Words, valid: Valid, kind: int, hashes: Words) -> None:
    null, start = _hash_of_null(), Word(kind) + _PRIME_5 + Word(8)
    for i in range(len(valid)):
        hashes[i] = _avalanche(_with_word(start, words[i])) if valid[i] else null


@entry(Array("u8"), Array("u8"), Array("?"), INT, INT, filled("u8"))
def _fill_from_numbers(
    low: Words, high: Words, valid: Valid, scale: int, kind: int, hashes: Words
) -> None:
    null, start = _hash_of_null(), Word(kind) + _PRIME_5 + Word(17)
    for i in range(len(valid)):
        if valid[i]:
            number_low, number_high, number_scale = _normalised(low[i], high[i], scale)
            hash_ = _with_word(_with_word(start, number_low), number_high)
            hashes[i] = _avalanche(_with_byte(hash_, Word(number_scale)))
        else:
            hashes[i] = null


@compiled
def _hash_of_null() -> Word:
    return _avalanche(Word(NULL) + _PRIME_5)


@compiled
def _hash_bytes(at: int, end: int, seed: Word) -> Word:
    length = Word(end - at)
    if at + 32 <= end:
        hash_, at = _with_stripes(at, end, seed)
    else:
        hash_ = seed + _PRIME_5
    hash_ += length
    while at + 8 <= end:
        hash_ = _with_word(hash_, word_at(at))
        at += 8
    if at + 4 <= end:
        hash_ = _with_quad(hash_, Word(quad_at(at)))
        at += 4
    while at < end:
        hash_ = _with_byte(hash_, Word(byte_at(at)))
        at += 1
    return _avalanche(hash_)


@compiled
def _with_stripes(at: int, end: int, seed: Word) -> tuple[Word, int]:
    """Return the merged lanes over stripes of 32 bytes, and the position after the last one."""
    lane_1, lane_2 = seed + _PRIME_1 + _PRIME_2, seed + _PRIME_2
    lane_3, lane_4 = seed, seed - _PRIME_1
    while at + 32 <= end:
        lane_1 = _round(lane_1, word_at(at))
        lane_2 = _round(lane_2, word_at(at + 8))
        lane_3 = _round(lane_3, word_at(at + 16))
        lane_4 = _round(lane_4, word_at(at + 24))
        at += 32
    hash_ = _rotated(lane_1, 1) + _rotated(lane_2, 7) + _rotated(lane_3, 12) + _rotated(lane_4, 18)
    for lane in (lane_1, lane_2, lane_3, lane_4):
        hash_ = (hash_ ^ _round(_ZERO, lane)) * _PRIME_1 + _PRIME_4
    return hash_, at


@compiled
def _with_word(hash_: Word, word: Word) -> Word:
    return _rotated(hash_ ^ _round(_ZERO, word), 27) * _PRIME_1 + _PRIME_4


@compiled
def _with_quad(hash_: Word, quad: Word) -> Word:
    return _rotated(hash_ ^ quad * _PRIME_1, 23) * _PRIME_2 + _PRIME_3


@compiled
def _with_byte(hash_: Word, byte: Word) -> Word:
    return _rotated(hash_ ^ byte * _PRIME_5, 11) * _PRIME_1


@compiled
def _round(lane: Word, word: Word) -> Word:
    return _rotated(lane + word * _PRIME_2, 31) * _PRIME_1


@compiled
def _rotated(word: Word, bits: int) -> Word:
    return word << Word(bits) | word >> Word(64 - bits)


@compiled
def _avalanche(hash_: Word) -> Word:
    hash_ = (hash_ ^ hash_ >> Word(33)) * _PRIME_2
    hash_ = (hash_ ^ hash_ >> Word(29)) * _PRIME_3
    return hash_ ^ hash_ >> Word(32)


@compiled
def _normalised(low: Word, high: Word, scale: int) -> tuple[Word, Word, int]:
    """Return the number with the smallest exact scale that is not negative."""
    if scale == 0:
        return low, high, scale
    negative = high >> Word(63) != _ZERO
    if negative:
        low, high = _negated(low, high)
    while scale > 0:
        tenth_low, tenth_high, rest = _tenth(low, high)
        if rest != _ZERO:
            break
        low, high = tenth_low, tenth_high
        scale -= 1
    if negative:
        low, high = _negated(low, high)
    return low, high, scale


@compiled
def _negated(low: Word, high: Word) -> tuple[Word, Word]:
    negated_low = ~low + _ONE
    return negated_low, ~high + (_ONE if negated_low == _ZERO else _ZERO)


@compiled
def _tenth(low: Word, high: Word) -> tuple[Word, Word, Word]:
    """Return an unsigned number of 128 bits divided by ten (low, high), and the remainder."""
    if high == _ZERO:
        return low // _TEN, _ZERO, low % _TEN
    upper = high % _TEN << Word(32) | low >> Word(32)
    lower = upper % _TEN << Word(32) | low & _LOW_HALF
    return upper // _TEN << Word(32) | lower // _TEN, high // _TEN, lower % _TEN
