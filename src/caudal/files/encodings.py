"""Texts of any encoding as UTF-8, piece by piece (rule 1 of detect.py).

A byte that cannot be decoded becomes the byte 0xFF, which no UTF-8 text holds. So the reader counts
its row among the repaired ones, as it does for damaged UTF-8.
"""

import codecs
import re
from collections.abc import Iterator

from caudal.errors import UsageError

_MARKS = (  # the longer ones first: UTF-32 begins like UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BEYOND_ASCII = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_LETTERS = "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜßàáâãäåæçèéêëìíîïñòóôõöøùúûüÿŒœŠšŽž"
_PUNCTUATION = "€‚„…‰‹‘’“”•–—™›\xa0¡£§©ª«®°²³µ·º»½¿"
_WORD = re.compile(rf"[A-Za-z{_LETTERS}]+")


def _invalid(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\udcff", error.end


codecs.register_error("caudal-mark", _invalid)


def byte_order_mark(sample: bytes) -> tuple[str, int] | None:
    """Return the encoding that a byte order mark names, and the mark's length."""
    for mark, encoding in _MARKS:
        if sample.startswith(mark) and (encoding != "utf-16-le" or len(sample) % 2 == 0 or sample):
            return encoding, len(mark)
    return None


def find_encoding(sample: bytes, *, final: bool) -> str:
    """Return the encoding of a text without a byte order mark."""
    if b"\0" in sample:
        return _of_zeros(sample)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample, final)
    except UnicodeDecodeError:
        return "cp1252" if _is_western(sample) else "utf-8"
    return "utf-8"


def _of_zeros(sample: bytes) -> str:
    """UTF-16 of mostly ASCII characters has zeros on one side only."""
    even, odd = sample[0::2], sample[1::2]
    for zeros, others, encoding in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if zeros.count(0) * 2 > len(zeros) and not others.count(0) and len(sample) > 3:
            return encoding
    return "utf-8"


def _is_western(sample: bytes) -> bool:
    if _BEYOND_ASCII.search(sample):
        return False
    try:
        text = sample.decode("cp1252")
    except UnicodeDecodeError:
        return False
    others = {letter for letter in text if letter > "\x7f"}
    if not others <= {*_LETTERS, *_PUNCTUATION}:
        return False
    words = [word for word in _WORD.findall(text) if not word.isascii()]
    plain = sum(letter <= "z" for word in words for letter in word)
    return bool(words) and 2 * plain >= sum(map(len, words))


def as_utf8(pieces: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Yield a text of another encoding as UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)("caudal-mark")
    for piece in pieces:
        yield decoder.decode(piece).encode("utf-8", "surrogateescape")
    yield decoder.decode(b"", True).encode("utf-8", "surrogateescape")


def known_encoding(name: str) -> str:
    """Return the usual name of an encoding; raise UsageError if Python does not know it."""
    try:
        found = codecs.lookup(name)
        text = "\n,".encode(name).decode(name)
    except (LookupError, UnicodeError) as error:
        raise UsageError(f"unknown encoding {name!r}: try utf-8, cp1252, utf-16") from error
    if text != "\n,":
        raise UsageError(f"{name!r} is not an encoding of texts: try utf-8, cp1252, utf-16")
    return found.name
