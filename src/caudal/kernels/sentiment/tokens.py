"""From bytes to events: where a token begins and ends, and which entry it is.

`exact` tells the rules in plain Python; here they are told over bytes, without building tokens:

- A *chunk* lies between separators (ASCII whitespace and straight quotes, which are tokens that
  change nothing) or the curly quotes and spaces beyond ASCII.
- Punctuation at both ends of a chunk is a token per character. Only three kinds matter: the
  exclamation mark, an ellipsis (an unknown word of three characters), and the end of a face.
- What remains is the chunk's core, one token; its last period stays if it ends an abbreviation.

Every reader takes and returns the count of events, the gap (the longest unknown token since the
last event, at most 3) and the floor (bytes before it belong to a face that is complete).
"""

from typing import Any

import numpy as np

from caudal.kernels.bytescan import lowest_bit
from caudal.kernels.compiled import compiled, inlined
from caudal.kernels.sentiment import tables
from caudal.kernels.sentiment.abbreviations import (
    consonants_end,
    dotted_end,
    is_abbreviation,
    may_be_listed,
)
from caudal.kernels.sentiment.faces import ABSORBED, DECLINED, NO_FACE, find_face, is_sarcasm
from caudal.kernels.sentiment.lanes import LANES, breaks
from caudal.kernels.sentiment.lookup import find_entry, find_word
from caudal.kernels.sentiment.unicode import break_size, changes_when_lowered, is_degree_face

_PERIOD, _QUOTE, _SMALL_N, _SMALL_T = ord("."), ord("'"), ord("n"), ord("t")
_EXCLAMATION = ord("!")
_SENTENCE_END_SIZE = 15


@inlined
def is_contraction(text: Any, stop: int) -> bool:
    """Return whether the chunk that ends at `stop` ends in the n of ``n't``, which is split off."""
    if text[stop] != _QUOTE:
        return False
    return bool(text[stop + 1] == _SMALL_T and text[stop - 1] == _SMALL_N)


@inlined
def ends_word(text: Any, start: int, stop: int, t: Any) -> bool:
    """Return whether the byte after the letters text[start:stop] certainly ends their token.

    It does when it is a separator, and when it is a mark that changes nothing and the chunk ends
    with it; a period is such a mark unless it may end an abbreviation.
    """
    kind = t.kind[text[stop]]
    if kind & tables.SEPARATOR:
        return True
    if not kind & tables.QUIET or not t.kind[text[stop + 1]] & tables.SEPARATOR:
        return False
    if text[stop] != _PERIOD:
        return True
    return stop - start > 1 and text[start] >= ord("a") and not may_be_listed(text, start, stop, t)


@inlined
def write_event(events: Any, count: int, gap: int, entry: int) -> int:
    events[count] = entry << 2 | gap
    return count + 1


@inlined
def read_word(
    text: Any, start: int, stop: int, events: Any, count: int, gap: int, floor: int, t: Any
) -> Any:
    """Read the token text[start:stop], made of ASCII letters only."""
    if stop - start < 2:
        if stop > start and t.kind[text[start]] & tables.FACE_END:
            return read_mark(text, start, events, count, gap, floor, t)
        return count, gap, floor
    entry = find_word(text, start, stop, t)
    if entry < 0:
        return count, max(gap, min(stop - start, 3)), floor
    return write_event(events, count, gap, entry), 0, floor


@compiled
def read_mark(
    text: Any, position: int, events: Any, count: int, gap: int, floor: int, t: Any
) -> Any:
    """Read a token of one ASCII character, which counts only as an exclamation or a face's end."""
    if text[position] == _EXCLAMATION:
        if is_sarcasm(text, position):
            return write_event(events, count, 3, tables.SARCASM), 0, floor
        return write_event(events, count, gap, tables.EXCLAMATION), 0, floor
    if t.kind[text[position]] & tables.FACE_END:
        face, size = find_face(text, position, floor, t)
        if face == DECLINED:
            return DECLINED, gap, floor
        if face == ABSORBED:
            return count, 3, position + 1
        if face != NO_FACE:
            return write_event(events, count, max(gap, min(size, 3)), face), 0, position + 1
    return count, gap, floor


@compiled
def read_chunk(
    text: Any, start: int, known: int, events: Any, count: int, gap: int, floor: int, t: Any
) -> Any:
    """Read the chunk that begins at `start`; its bytes before `known` are letters.

    Also returns where the next chunk begins. The caller's buffer ends with a separator.
    """
    stop, resume, is_ascii = find_chunk_end(text, known)
    if stop == DECLINED:
        return DECLINED, gap, floor, resume
    if stop > start and is_contraction(text, stop):
        stop -= 1
    while start < stop and t.kind[text[start]] & tables.SPLIT:
        count, gap, floor = read_mark(text, start, events, count, gap, floor, t)
        if count == DECLINED:
            return count, gap, floor, resume
        start += 1
    core = find_core_end(text, start, stop, t)
    if core > start:
        size = core - start if is_ascii else count_characters(text, start, core)
        count, gap, floor = read_core(text, start, core, size, events, count, gap, floor, t)
    while core < stop and count != DECLINED:
        periods = count_periods(text, core, stop)
        if periods >= 3:
            gap = 3
            core += periods
        else:
            count, gap, floor = read_mark(text, core, events, count, gap, floor, t)
            core += 1
    return count, gap, floor, resume


@inlined
def find_chunk_end(text: Any, position: int) -> Any:
    """Return where the chunk ends, where the next one begins, and whether the chunk is all ASCII.

    DECLINED for a letter whose lower-case form has another length or is ASCII.
    """
    is_ascii = True
    while True:
        bits = breaks(text, position)
        if bits == 0:
            position += LANES
            continue
        position += lowest_bit(bits)
        if text[position] < 0x80:
            return position, position + 1, is_ascii
        size = break_size(text, position)
        if size:
            return position, position + size, is_ascii
        if changes_when_lowered(text, position):
            return DECLINED, position, is_ascii
        is_ascii = False
        position += 1


@inlined
def find_core_end(text: Any, start: int, stop: int, t: Any) -> int:
    """Cut trailing punctuation off text[start:stop]; a period stays if it ends an abbreviation."""
    consonants = dotted = np.int64(-1)  # not known yet
    while stop > start:
        if t.kind[text[stop - 1]] & tables.SPLIT:
            stop -= 1
            continue
        periods = count_periods_before(text, start, stop)
        if periods == 0:
            break
        if periods < 3:
            if dotted < 0:
                consonants = np.int64(consonants_end(text, start, stop, t))
                dotted = np.int64(dotted_end(text, start, stop))
            if is_abbreviation(text, start, stop, consonants, dotted, t):
                break
        stop -= periods if periods >= 3 else 1
    return stop


@inlined
def count_periods(text: Any, start: int, stop: int) -> int:
    position = start
    while position < stop and text[position] == _PERIOD:
        position += 1
    return position - start


@inlined
def count_periods_before(text: Any, start: int, stop: int) -> int:
    position = stop
    while position > start and text[position - 1] == _PERIOD:
        position -= 1
    return stop - position


@inlined
def count_characters(text: Any, start: int, stop: int) -> int:
    characters = 0
    for position in range(start, stop):
        characters += (text[position] & 0xC0) != 0x80
    return characters


@inlined
def read_core(
    text: Any,
    start: int,
    stop: int,
    characters: int,
    events: Any,
    count: int,
    gap: int,
    floor: int,
    t: Any,
) -> Any:
    """Read the token text[start:stop], which may hold any bytes."""
    if stop - start == 1:
        return read_mark(text, start, events, count, gap, floor, t)
    if declines_core(text, start, stop):
        return DECLINED, gap, floor
    entry = find_entry(text, start, stop, t)
    if entry < 0 or t.effect[entry] & tables.FACE:
        gap = max(gap, min(characters, 3))
    if entry < 0:
        return count, gap, floor
    return write_event(events, count, gap, entry), 0, floor


@inlined
def declines_core(text: Any, start: int, stop: int) -> bool:
    """Return whether the token might be glued to the one before in a rare face (``o .O``, ``> .>``,
    ``° o °``), or is the very token that stands for an empty line."""
    size = stop - start
    if size == 2 and text[start] == _PERIOD and text[start + 1] in (ord("O"), ord(">")):
        return True
    if size == _SENTENCE_END_SIZE and text[start] == ord("E") and text[start + 3] == ord("-"):
        return True
    return size <= 3 and is_degree_face(text, start, stop)
