"""Read the sentiment lexicon: the polarity and intensity of words.

`lexicon.tsv` has the content of TextBlob's lexicon in four columns. Its comments name the authors,
the licence and the version.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

LEXICON_FILE = Path(__file__).with_name("lexicon.tsv")
_VERSION = "# version "


@dataclass(frozen=True, slots=True)
class Word:
    """The entry of one word: polarity, intensity, and whether it modifies the next word."""

    polarity: float
    intensity: float
    is_adverb: bool


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The words by lower-case form, and the version of the file."""

    words: dict[str, Word]
    version: str


Senses = dict[str | None, list[tuple[float, float]]]


def load_lexicon(path: Path = LEXICON_FILE) -> Lexicon:
    """Read the lexicon file and derive its adverbs.

    The senses of a word are averaged per part of speech, then over the parts of speech, in file
    order. TextBlob adds in the same order, so the results agree to the last bit.
    """
    head, lines = _parts(path)
    senses: dict[str, Senses] = {}
    for line in lines:
        form, part, polarity, intensity = line.split("\t")
        by_part = senses.setdefault(form, {})
        by_part.setdefault(part or None, []).append((float(polarity), float(intensity)))
    averages = {form: {part: _average(v) for part, v in p.items()} for form, p in senses.items()}
    words = {form: _word(parts) for form, parts in averages.items()}
    words.update(_adverbs(averages))
    return Lexicon(words, next(line for line in head if line.startswith(_VERSION))[len(_VERSION) :])


def _parts(path: Path) -> tuple[list[str], list[str]]:
    """Return the file's comments and its other lines."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return (
        [line for line in lines if line.startswith("#")],
        [line for line in lines if not line.startswith("#")],
    )


def _average(pairs: Iterable[tuple[float, float]]) -> tuple[float, float]:
    polarities, intensities = zip(*pairs, strict=True)
    return sum(polarities) / float(len(polarities)), sum(intensities) / float(len(intensities))


def _word(parts: dict[str | None, tuple[float, float]]) -> Word:
    polarity, intensity = _average(parts.values())
    return Word(polarity, intensity, is_adverb="RB" in parts)


def _adverbs(averages: dict[str, dict[str | None, tuple[float, float]]]) -> dict[str, Word]:
    """Return the adverb of each adjective (terrible: terribly). It replaces a word of that form."""
    return {
        _adverb(form): Word(*parts["JJ"], is_adverb=True)
        for form, parts in averages.items()
        if "JJ" in parts
    }


def _adverb(adjective: str) -> str:
    stem = adjective[:-1] + "i" if adjective.endswith("y") else adjective
    return (stem[:-2] if stem.endswith("le") else stem) + "ly"
