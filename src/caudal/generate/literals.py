"""Python literals as in the Kaggle files: `repr` of strings, some of them with escapes."""


def literal(string: str) -> str:
    """Return the string as `repr` writes it: in double quotes if it holds only apostrophes."""
    return repr(string)


def escaped_literal(string: str) -> str:
    """Return the literal with every non-ASCII letter as a four-digit escape, `'Ren\\u00e9'`."""
    return "".join(c if c.isascii() else f"\\u{ord(c):04x}" for c in literal(string))


def spellings(strings: list[str]) -> list[str]:
    """Return the literals of all strings, every fourth one in the escaped spelling."""
    return [
        escaped_literal(string) if i % 4 == 0 else literal(string)
        for i, string in enumerate(strings)
    ]
