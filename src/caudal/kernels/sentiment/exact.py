"""The analyzer in plain Python: slow, exact, and the fallback for rows the kernel declines.

Theory of operation. A text becomes tokens (quotes and outer punctuation are split off, a period
unless it ends an abbreviation), tokens become sentences, and inside a sentence the pieces of
``( ! )`` and of emoticons are glued together again. The lower-case tokens of all sentences then
run through one small state machine:

1. A lexicon word opens an assessment, or refines the last one when an adverb came just before.
2. A negation just before halves and inverts it; a small word in between does not matter.
3. An exclamation mark boosts the last assessment; ``(!)`` and emoticons open their own.

The polarity is the mean of the assessments.
"""

import re
from collections.abc import Iterable, Iterator

from caudal.kernels.sentiment import rules
from caudal.kernels.sentiment.lexicon import Word

_SPLIT = tuple(rules.SPLIT_PUNCTUATION)
_SPACED_QUOTES = str.maketrans({q: f" {q} " for q in rules.CURLY_QUOTES + "'\""})
_DOTTED = re.compile(r"(?:[A-Za-z]\.)*")
_CONSONANTS = re.compile(rf"[A-Z][{rules.ABBREVIATION_CONSONANTS}]*")
_LEADING = re.compile(f"[{re.escape(rules.SPLIT_PUNCTUATION)}]*")
_LONGEST_ABBREVIATION = max(map(len, rules.ABBREVIATIONS))
_TERMINATORS = frozenset(("...", ".", "!", "?", rules.SENTENCE_END))
_SENTENCE_TAIL = _TERMINATORS | {"”", "’", ")"}
_SARCASM = re.compile(r"\( ?! ?\)")
_FACE = re.compile(
    "({})(?=$| )".format("|".join(" ?".join(map(re.escape, face)) for face in rules.faces()))
)
_ASSESSED_FACES = rules.assessed_faces()


def polarity(text: str, words: dict[str, Word]) -> float:
    """Return the mean polarity of the text's assessments, 0.0 when there is none."""
    scores = list(_assess((token.lower() for token in tokens(text)), words))
    return sum(scores, 0.0) / float(len(scores) or 1)


def tokens(text: str) -> list[str]:
    """Return the text's tokens in order, case kept, faces glued, sentence ends dropped."""
    return [token for s in _sentences(_split_tokens(text)) for token in _glue(s).split()]


def _split_tokens(text: str) -> list[str]:
    text = text.replace("n't", " n't").translate(_SPACED_QUOTES)
    text = re.sub(r"\n{2,}", f" {rules.SENTENCE_END} ", text.replace("\r\n", "\n"))
    return [token for chunk in text.split() for token in _split_chunk(chunk)]


def _split_chunk(chunk: str) -> Iterator[str]:
    """Cut leading and trailing punctuation off; three or more periods are one token.

    By places in the chunk, in linear time: a chunk may be as long as a record.
    """
    start = _end(_LEADING, chunk)
    yield from chunk[:start]
    chunk = chunk[start:]
    dotted, consonants, end = _end(_DOTTED, chunk), _end(_CONSONANTS, chunk), len(chunk)
    tail = []
    while end and (chunk[end - 1] in _SPLIT or chunk[end - 1] == "."):
        if chunk[end - 1] in _SPLIT:
            end -= 1
            tail.append(chunk[end])
        if chunk.endswith("...", 0, end):
            tail.append("...")
            while end and chunk[end - 1] == ".":
                end -= 1
        if chunk.endswith(".", 0, end):
            listed = end <= _LONGEST_ABBREVIATION and chunk[:end] in rules.ABBREVIATIONS
            if listed or (end % 2 == 0 and end <= dotted) or 2 < end <= consonants + 1:
                break
            end -= 1
            tail.append(".")
    if end:
        yield chunk[:end]
    yield from reversed(tail)


def _end(pattern: re.Pattern[str], text: str) -> int:
    """Return how far a pattern reaches from the start of a text."""
    found = pattern.match(text)
    return found.end() if found else 0


def _sentences(tokens: Iterable[str]) -> Iterator[list[str]]:
    """Cut after each run that a terminator opens; straight quotes never belong to such a run."""
    sentence: list[str] = []
    in_tail = False
    for token in tokens:
        if in_tail and token not in _SENTENCE_TAIL:
            yield sentence
            sentence, in_tail = [], False
        in_tail = in_tail or token in _TERMINATORS
        if token != rules.SENTENCE_END:
            sentence.append(token)
    yield sentence


def _glue(sentence: list[str]) -> str:
    text = _SARCASM.sub("(!)", " ".join(sentence))
    return _FACE.sub(lambda match: match.group().replace(" ", ""), text)


def _assess(tokens: Iterable[str], words: dict[str, Word]) -> Iterator[float]:
    """Run the state machine of the module's docstring; yield the polarity of each assessment."""
    value, intensity, negated, is_open = 0.0, 1.0, False, False
    modifier = ""
    negation = False
    for token in tokens:
        word = words.get(token)
        if word is not None:
            if modifier:
                value, intensity = _clamp(word.polarity * intensity), word.intensity
            else:
                if is_open:
                    yield _final(value, negated)
                value, intensity = word.polarity, word.intensity
                negated, is_open = False, True
            if negation:
                intensity, negated = 1.0 / intensity, True
            modifier = token if word.is_adverb else ""
            negation = False
            continue
        negation = token in rules.NEGATIONS or (negation and len(token) <= 1)
        if negation and modifier.endswith("ly"):
            negated, negation = True, False
        elif len(token) > 2:
            modifier = ""
        if token == "!":
            value = _clamp(value * rules.EXCLAMATION_BOOST)
        face = 0.0 if token == "(!)" else _ASSESSED_FACES.get(token)
        if face is not None:
            if is_open:
                yield _final(value, negated)
            value, intensity, negated, is_open = face, 1.0, False, True
    if is_open:
        yield _final(value, negated)


def _final(value: float, negated: bool) -> float:
    return value * rules.NEGATION_FACTOR if negated else value


def _clamp(value: float) -> float:
    return max(-1.0, min(value, 1.0))
