"""The lexicon and the tokeniser's rules as flat arrays, the form in which the kernel reads them.

An *entry* is anything that changes an assessment: a lexicon word, a negation, a face. Its number
indexes `polarity`, `intensity` and `effect`. Two entries have fixed numbers, because no lookup
finds them: the exclamation mark and the sarcasm mark ``(!)``.

Lookup: a token of at most 24 bytes is three little-endian words (its first eight bytes, its last
eight when longer than eight, the eight after the first when longer than sixteen). They determine
the token together with its length. A product hash of the first two picks a bit in a filter small
enough for the first-level cache, and, when that bit is set, a slot in an open-addressing table.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from caudal.kernels.sentiment import rules
from caudal.kernels.sentiment.lexicon import Word

MAX_TOKEN = 24
MAX_FACE = 5
MAX_ABBREVIATION = max(map(len, rules.ABBREVIATIONS))

EXCLAMATION, SARCASM = 0, 1

ADVERB, ENDS_IN_LY, NEGATION, LONG, FACE = 1, 2, 4, 8, 16
"""Effects of an entry. LONG marks a negation that makes the analyzer forget an adverb."""

SEPARATOR, SPLIT, FACE_END, FACE_INNER, CONSONANT, QUIET = 1, 2, 4, 8, 16, 32
"""Kinds of ASCII bytes: between tokens, cut off at a token's ends, parts of a face, parts of an
abbreviation; QUIET ones are cut off and then change nothing."""

HASH_FIRST, HASH_LAST = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
FILTER_SHIFT, SLOT_SHIFT, ABBREVIATION_SHIFT = 64 - 17, 64 - 13, 64 - 10
SMALL_LETTERS = 0x2020202020202020

WHITESPACE = b"\t\n\v\f\r\x1c\x1d\x1e\x1f "
_WORD_MASK = 2**64 - 1


MAX_ENTRIES = 1 << 12
ABBREVIATION_COUNT = len(rules.ABBREVIATIONS)
FACE_COUNT = sum(face.isascii() for face in rules.faces())


Tables = np.void
"""One record of the type below: a single address, which is cheap to pass to every function."""

TABLES = np.dtype(
    [
        ("kind", np.uint8, 256),
        ("filter", np.uint64, 1 << (64 - FILTER_SHIFT - 6)),
        ("slots", np.int32, 1 << (64 - SLOT_SHIFT)),
        ("first", np.uint64, MAX_ENTRIES),
        ("last", np.uint64, MAX_ENTRIES),
        ("middle", np.uint64, MAX_ENTRIES),
        ("length", np.int64, MAX_ENTRIES),
        ("polarity", np.float64, MAX_ENTRIES),
        ("intensity", np.float64, MAX_ENTRIES),
        ("effect", np.uint8, MAX_ENTRIES),
        ("abbreviations", np.uint64, ABBREVIATION_COUNT),
        ("abbreviation_filter", np.uint64, 1 << (64 - ABBREVIATION_SHIFT - 6)),
        ("face_keys", np.uint64, FACE_COUNT),
        ("face_entries", np.int32, FACE_COUNT),
    ],
    align=True,
)


class _Entry(NamedTuple):
    token: bytes
    polarity: float
    intensity: float
    effect: int


def compile_tables(words: dict[str, Word]) -> Tables:
    """Lay the lexicon and the rules out in arrays."""
    entries = [_Entry(b"!", 0.0, 1.0, 0), _Entry(b"(!)", 0.0, 1.0, FACE)]
    entries += [_word_entry(form, word) for form, word in words.items() if _is_reachable(form)]
    entries += [_negation_entry(form) for form in rules.NEGATIONS]
    entries += [_Entry(f.encode(), p, 1.0, FACE) for f, p in rules.assessed_faces().items()]
    keys = [token_key(entry.token) for entry in entries]
    numbers = {entry.token: number for number, entry in enumerate(entries)}
    faces = [face for face in rules.faces() if face.isascii()]
    tables: Tables = np.zeros(1, TABLES)[0]
    tables["kind"] = _kinds()
    tables["filter"], tables["slots"] = _hash_tables(keys)
    count = len(entries)
    tables["first"][:count], tables["last"][:count], tables["middle"][:count] = _columns(keys)
    tables["length"][:count] = [len(entry.token) for entry in entries]
    tables["polarity"][:count] = [entry.polarity for entry in entries]
    tables["intensity"][:count] = [entry.intensity for entry in entries]
    tables["effect"][:count] = [entry.effect for entry in entries]
    tables["abbreviations"] = _packed(sorted(rules.ABBREVIATIONS))
    tables["abbreviation_filter"] = _abbreviation_filter()
    tables["face_keys"] = _packed(face[::-1] for face in faces)
    tables["face_entries"] = [numbers.get(face.lower().encode(), -1) for face in faces]
    return tables


def token_key(token: bytes) -> tuple[int, int, int]:
    """Return the three words that stand for a token, with its length (see above)."""
    first, last, middle = token[:8], token[-8:], token[8:16]
    return (
        int.from_bytes(first, "little"),
        int.from_bytes(last, "little") if len(token) > 8 else 0,
        int.from_bytes(middle, "little") if len(token) > 16 else 0,
    )


def _is_reachable(form: str) -> bool:
    """Forms with spaces or quotes are never one token; the analyzer cannot find them either."""
    return len(form.encode()) <= MAX_TOKEN and not set(form) & set(" '\"" + rules.CURLY_QUOTES)


def _word_entry(form: str, word: Word) -> _Entry:
    effect = (ADVERB if word.is_adverb else 0) | (ENDS_IN_LY if form.endswith("ly") else 0)
    return _Entry(form.encode(), word.polarity, word.intensity, effect)


def _negation_entry(form: str) -> _Entry:
    return _Entry(form.encode(), 0.0, 1.0, NEGATION | (LONG if len(form) > 2 else 0))


def _columns(keys: list[tuple[int, int, int]]) -> npt.NDArray[np.uint64]:
    return np.array(keys, np.uint64).T


def _packed(texts: Iterable[str]) -> npt.NDArray[np.uint64]:
    return np.array([int.from_bytes(text.encode(), "little") for text in texts], np.uint64)


def _hash_tables(keys: list[tuple[int, int, int]]) -> tuple[list[int], list[int]]:
    bits = [0] * (1 << (64 - FILTER_SHIFT - 6))
    slots = [-1] * (1 << (64 - SLOT_SHIFT))
    for number, (first, last, _) in enumerate(keys):
        mixed = (first * HASH_FIRST + last * HASH_LAST) & _WORD_MASK
        bit, slot = mixed >> FILTER_SHIFT, mixed >> SLOT_SHIFT
        bits[bit >> 6] |= 1 << (bit & 63)
        while slots[slot] >= 0:
            slot = (slot + 1) % len(slots)
        slots[slot] = number
    return bits, slots


def _abbreviation_filter() -> list[int]:
    bits = [0] * (1 << (64 - ABBREVIATION_SHIFT - 6))
    for abbreviation in rules.ABBREVIATIONS:
        key = int.from_bytes(abbreviation[:-1].encode(), "little")
        bit = (key * HASH_FIRST & _WORD_MASK) >> ABBREVIATION_SHIFT
        bits[bit >> 6] |= 1 << (bit & 63)
    return bits


def _kinds() -> npt.NDArray[np.uint8]:
    kind = np.zeros(256, np.uint8)
    ascii_faces = [face.encode() for face in rules.faces() if face.isascii()]
    groups = {
        SEPARATOR: WHITESPACE + b"'\"",
        SPLIT: rules.SPLIT_PUNCTUATION.encode(),
        FACE_END: bytes(face[-1] for face in ascii_faces if len(face) > 1),
        FACE_INNER: b"".join(face[:-1] for face in ascii_faces),
        CONSONANT: rules.ABBREVIATION_CONSONANTS.encode(),
    }
    loud = groups[FACE_END] + b"!"
    groups[QUIET] = bytes(byte for byte in groups[SPLIT] if byte not in loud) + b"."
    for flag, members in groups.items():
        kind[np.frombuffer(members, np.uint8)] |= np.uint8(flag)
    return kind
