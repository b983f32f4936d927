"""Names as SQL text, and which of them are the same."""

import string


def quote(name: str) -> str:
    """Return an identifier as SQL text."""
    return '"' + name.replace('"', '""') + '"'


def folded(name: str) -> str:
    """Return what a name has in common with all names that DuckDB takes for the same one.

    DuckDB ignores the case of ASCII letters, and of no others.

    >>> folded("Ñame") == folded("ÑAME"), folded("ñ") == folded("Ñ")
    (True, False)
    """
    return name.lower() if name.isascii() else name.translate(_SMALL_LETTERS)


_SMALL_LETTERS = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
