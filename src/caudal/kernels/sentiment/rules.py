"""The fixed word lists of the pattern analyzer's English tokeniser.

They restate, as data, what TextBlob's default analyzer carries in its code (originally CLiPS
pattern, BSD licence). Only the lexicon itself is read from the installed package.
"""

SPLIT_PUNCTUATION = ",;:!?()[]{}`'\"@#$^&*+-|=~_"
"""Characters that are cut from both ends of a token; the period has its own rules."""

CURLY_QUOTES = "“”‘’"
"""Quotes that become tokens of their own wherever they stand, as ``'`` and ``"`` do."""

NEGATIONS = ("no", "not", "never")
"""``n't`` is absent: quotes are split off first, so no token can hold one."""

SENTENCE_END = "END-OF-SENTENCE"
"""The token that stands for an empty line; it never reaches the assessment."""

EXCLAMATION_BOOST = 1.25
NEGATION_FACTOR = -0.5

# fmt: off
ABBREVIATIONS = frozenset((
    "a.", "adj.", "adv.", "al.", "a.m.", "c.", "cf.", "comp.", "conf.", "def.", "ed.", "e.g.",
    "esp.", "etc.", "ex.", "f.", "fig.", "gen.", "id.", "i.e.", "int.", "l.", "m.", "Med.", "Mil.",
    "Mr.", "n.", "n.q.", "orig.", "pl.", "pred.", "pres.", "p.m.", "ref.", "v.", "vs.",
))
# fmt: on
"""Tokens that keep their last period, besides ``T.``, ``U.S.`` and capital plus consonants."""

ABBREVIATION_CONSONANTS = "bcdfghjklmnpqrstvwxz|"

EMOTICONS: tuple[tuple[float, tuple[str, ...]], ...] = (
    (1.00, ("<3", "♥")),
    (1.00, (">:D", ":-D", ":D", "=-D", "=D", "X-D", "x-D", "XD", "xD", "8-D")),
    (0.75, (">:P", ":-P", ":P", ":-p", ":p", ":-b", ":b", ":c)", ":o)", ":^)")),
    (0.50, (">:)", ":-)", ":)", "=)", "=]", ":]", ":}", ":>", ":3", "8)", "8-)")),
    (0.25, (">;]", ";-)", ";)", ";-]", ";]", ";D", ";^)", "*-)", "*)")),
    (0.05, (">:o", ":-O", ":O", ":o", ":-o", "o_O", "o.O", "°O°", "°o°")),
    (-0.25, (">:/", ":-/", ":/", ":\\", ">:\\", ":-.", ":-s", ":s", ":S", ":-S", ">.>")),
    (-0.75, (">:[", ":-(", ":(", "=(", ":-[", ":[", ":{", ":-<", ":c", ":-c", "=/")),
    (-1.00, (":'(", ":'''(", ";'(")),
)
"""Polarity and faces. The order decides where one face begins another (``:c)`` before ``:c``)."""


def faces() -> dict[str, float]:
    """Return every face as it is written, in order, with its polarity."""
    return {face: polarity for polarity, group in EMOTICONS for face in group}


def assessed_faces() -> dict[str, float]:
    """Return the lower-case tokens that count as a face; alphabetic ones (``xd``) do not."""
    return {face.lower(): value for face, value in faces().items() if not face.isalpha()}
