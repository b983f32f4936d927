"""Phrases from templates: `the {aspect} is {very} {good}` in many variants."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from string import Formatter

import numpy as np

from caudal.generate.dice import Dice

Words = Mapping[str, Sequence[str]]
_parse = Formatter().parse
_VOWEL_AFTER_A = re.compile(r"\b([Aa]) (?=[aeiouAEIOU])")


def expand(templates: Sequence[str], words: Words, variants: int) -> list[str]:
    """Return up to `variants` different wordings of each template, the same for every seed.

    Every slot is drawn independently, even if a template contains the same slot twice.
    """
    wordings = (_wordings(template, words, variants) for template in templates)
    return list(dict.fromkeys(chain.from_iterable(wordings)))


def _wordings(template: str, words: Words, variants: int) -> Iterator[str]:
    parts = [(literal, words[slot] if slot else ("",)) for literal, slot, _, _ in _parse(template)]
    draws = Dice(0).bits(template, np.arange(variants * len(parts), dtype=np.int64))
    for row in draws.reshape(variants, len(parts)).tolist():
        drawn = zip(parts, row, strict=True)
        wording = "".join(
            literal + choices[draw % len(choices)] for (literal, choices), draw in drawn
        )
        yield _VOWEL_AFTER_A.sub(r"\1n ", wording)
