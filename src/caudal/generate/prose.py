"""Running text made of clauses: fast to generate, with few repetitions.

A sentence is a gap, a lead, a clause and a tail. Each sentence of a text is sad, plain or glad,
drawn from the tone of the text. So the sentiment of a text follows the score or the quality that
it belongs to.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from caudal.generate import text
from caudal.generate.dice import Dice, Ints, Mask, weighted_slots
from caudal.generate.ragged import spread

MOST_SENTENCES = 255
TONE_UNIT = 256
_GAPS = (" ", "", "\n")
_GAP_SLOTS = weighted_slots((4_050, 40, 6))


@dataclass(frozen=True)
class Voice:
    """The clauses of one mood, in lower case, and their possible endings."""

    clauses: Sequence[str]
    tails: Sequence[str]


@dataclass(frozen=True)
class Tone:
    """Per text, the number of sad and of glad sentences among TONE_UNIT."""

    sad: Ints
    glad: Ints


class Prose:
    """A generator of texts from the three voices, and from leads that any clause can follow."""

    def __init__(self, leads: Sequence[str], sad: Voice, plain: Voice, glad: Voice) -> None:
        voices = (sad, plain, glad)
        strings = [*_GAPS, "", *leads]
        self._lead_count = len(leads) + 1
        self._clause_at, self._tail_at = [], []
        for voice in voices:
            self._clause_at.append(len(strings))
            strings += [*voice.clauses, *map(_capitalised, voice.clauses)]
            self._tail_at.append(len(strings))
            strings += voice.tails
        self._clause_counts = np.array([len(voice.clauses) for voice in voices], dtype=np.int64)
        self._tail_counts = np.array([len(voice.tails) for voice in voices], dtype=np.int64)
        whole = text.pool(strings)
        self._pool = text.doubled(whole)
        self._special = text.special(whole)

    def fields(self, dice: Dice, label: str, index: Ints, sentences: Ints, tone: Tone) -> pa.Array:
        """Return one text per index as a CSV field, with this many sentences.

        Zero sentences give an empty field. The pool knows which pieces need quotes, so the text
        itself is not searched.
        """
        ends = np.cumsum(sentences)
        row, place = spread(sentences)
        number = index[row] * (MOST_SENTENCES + 1) + place
        mood = _moods(dice, label, number, Tone(tone.sad[row], tone.glad[row]))
        pieces = np.empty((len(row), 4), dtype=np.int64)
        pieces[:, 0] = dice.weighted(f"{label}/gap", number, _GAP_SLOTS)
        pieces[place == 0, 0] = _GAPS.index("")
        pieces[:, 1:3] = self._openings(dice, label, number, mood)
        tail = dice.below(f"{label}/tail", number, self._tail_counts[mood])
        pieces[:, 3] = np.array(self._tail_at)[mood] + tail
        return text.enclosed(
            text.weave(self._pool, pieces.ravel(), ends * 4), self._need_quotes(pieces, ends)
        )

    def _need_quotes(self, pieces: Ints, ends: Ints) -> Mask:
        """Return whether a text has at least one piece that needs quotes."""
        seen = np.concatenate(([0], np.cumsum(self._special[pieces].any(axis=1))))
        totals = seen[ends]
        return np.diff(totals, prepend=0) > 0

    def _openings(self, dice: Dice, label: str, number: Ints, mood: Ints) -> Ints:
        """Return the lead and the clause of every sentence.

        A clause without a lead starts with a capital letter.
        """
        lead = dice.below(f"{label}/lead", number, self._lead_count * 3)
        lead[lead >= self._lead_count] = 0
        counts = self._clause_counts[mood]
        clause = dice.below(f"{label}/clause", number, counts) + counts * (lead == 0)
        return np.stack((len(_GAPS) + lead, np.array(self._clause_at)[mood] + clause), axis=1)


def _moods(dice: Dice, label: str, number: Ints, tone: Tone) -> Ints:
    """Return 0 for a sad sentence, 1 for a plain one, 2 for a glad one."""
    draw = dice.below(f"{label}/mood", number, TONE_UNIT)
    moods: Ints = 1 + (draw >= TONE_UNIT - tone.glad) - (draw < tone.sad).astype(np.int64)
    return moods


def _capitalised(clause: str) -> str:
    return clause[:1].upper() + clause[1:]
