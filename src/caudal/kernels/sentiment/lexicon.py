"""The sentiment lexicon: which words carry polarity, and how much.

The file is the one that the textblob package ships. It is found without importing the package,
because importing it costs half a second and pulls in nltk.
"""

import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from caudal.errors import UsageError

LEXICON_FILE = Path("en") / "en-sentiment.xml"


@dataclass(frozen=True, slots=True)
class Word:
    """What the lexicon says about one word: polarity, intensity, and whether it modifies."""

    polarity: float
    intensity: float
    is_adverb: bool


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The words by lower-case form, and the version that the file states."""

    words: dict[str, Word]
    version: str


Senses = dict[str | None, list[tuple[float, float]]]


def lexicon_path() -> Path:
    """Where the installed textblob package keeps its lexicon."""
    spec = importlib.util.find_spec("textblob")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(location) / LEXICON_FILE
        if path.is_file():
            return path
    raise UsageError("the sentiment lexicon is missing; install it with: pip install textblob")


def load_lexicon(path: Path | None = None) -> Lexicon:
    """Parse the lexicon file and derive its adverbs.

    Each word's senses are averaged per part of speech, then over the parts of speech, in file
    order: the sums keep the analyzer's order of additions, so that results agree to the last bit.
    """
    root = _parse((path or lexicon_path()).read_bytes())
    senses: dict[str, Senses] = {}
    for element in root.iterfind("word"):
        form = element.get("form")
        if form:
            by_part = senses.setdefault(form, {})
            by_part.setdefault(element.get("pos"), []).append(
                (float(element.get("polarity", 0.0)), float(element.get("intensity", 1.0)))
            )
    averages = {form: {part: _average(v) for part, v in p.items()} for form, p in senses.items()}
    words = {form: _word(parts) for form, parts in averages.items()}
    words.update(_adverbs(averages))
    return Lexicon(words, root.get("version", "unknown"))


def _parse(document: bytes) -> ElementTree.Element:
    """The root element. A document type is refused: it could define entities that expand."""
    if b"<!DOCTYPE" in document:
        raise UsageError("the sentiment lexicon must not declare a document type")
    return ElementTree.fromstring(document)


def _average(pairs: Iterable[tuple[float, float]]) -> tuple[float, float]:
    polarities, intensities = zip(*pairs, strict=True)
    return sum(polarities) / float(len(polarities)), sum(intensities) / float(len(intensities))


def _word(parts: dict[str | None, tuple[float, float]]) -> Word:
    polarity, intensity = _average(parts.values())
    return Word(polarity, intensity, is_adverb="RB" in parts)


def _adverbs(averages: dict[str, dict[str | None, tuple[float, float]]]) -> dict[str, Word]:
    """Each adjective's adverb (terrible: terribly); it replaces a word of the same form."""
    return {
        _adverb(form): Word(*parts["JJ"], is_adverb=True)
        for form, parts in averages.items()
        if "JJ" in parts
    }


def _adverb(adjective: str) -> str:
    stem = adjective[:-1] + "i" if adjective.endswith("y") else adjective
    return (stem[:-2] if stem.endswith("le") else stem) + "ly"
