"""Python literals as the Kaggle files hold them: `repr` of strings, now and then with escapes."""


def literal(string: str) -> str:
    """The string as `repr` writes it: in double quotes where it holds only apostrophes."""
    return repr(string)


def escaped_literal(string: str) -> str:
    """The same with every non-ASCII letter as a four-digit escape, `'Ren\\u00e9'`."""
    return "".join(c if c.isascii() else f"\\u{ord(c):04x}" for c in literal(string))


def spellings(strings: list[str]) -> list[str]:
    """Literals of all strings, one in four of those that allow it in the escaped spelling."""
    return [
        escaped_literal(string) if i % 4 == 0 else literal(string)
        for i, string in enumerate(strings)
    ]
