"""The shipped lexicon, made of TextBlob's: `python -m tests.unit.kernels.lexicon_text`."""

import importlib.util
from pathlib import Path
from xml.etree import ElementTree

from caudal.kernels.sentiment.lexicon import LEXICON_FILE

_HEAD = """\
# Subjectivity lexicon for English adjectives, by Tom De Smedt and Walter Daelemans.
# From the pattern library, as distributed by TextBlob (en-sentiment.xml), four of its columns.
# Licence: PDDL 1.0, https://opendatacommons.org/licenses/pddl/1-0/
# version {version}
# form, part of speech, polarity, intensity
"""


def lexicon_text() -> str:
    """Return the text of `lexicon.tsv`, from the file of the installed TextBlob."""
    spec = importlib.util.find_spec("textblob")
    assert spec is not None
    assert spec.origin is not None
    file = Path(spec.origin).parent / "en" / "en-sentiment.xml"
    root = ElementTree.fromstring(file.read_bytes())
    lines = [
        "\t".join(
            (
                word.get("form", ""),
                word.get("pos", ""),
                word.get("polarity", "0.0"),
                word.get("intensity", "1.0"),
            )
        )
        for word in root.iterfind("word")
        if word.get("form")
    ]
    assert not any('"' in line or line.count("\t") != 3 for line in lines)
    return _HEAD.format(version=root.get("version", "unknown")) + "\n".join(lines) + "\n"


if __name__ == "__main__":
    LEXICON_FILE.write_text(lexicon_text(), encoding="utf-8")
