"""Cutting text into statements: pure. A semicolon ends a statement, unless it is inside of a text,
a name or a comment. A line that begins with a dot is a command, where no statement is open.
"""

import re

_PIECES = re.compile(
    r"""
    '(?:[^']|'')*(?:'|\Z)           # a text
    | "(?:[^"]|"")*(?:"|\Z)         # a quoted name
    | \$(\w*)\$.*?(?:\$\1\$|\Z)     # a text in dollars
    | --[^\n]*(?:\n|\Z)             # a comment to the end of the line
    | /\*.*?(?:\*/|\Z)              # a comment
    | ;
    | [^'"$;/-]+
    | .
    """,
    re.DOTALL | re.VERBOSE,
)
_COMMENTS = re.compile(r"\s*(?:--[^\n]*(?:\n|\Z)|/\*.*?\*/\s*)*\s*", re.DOTALL)


def take_statement(text: str) -> tuple[str, str] | None:
    """Return the first complete statement or command and the rest; None if there is none."""
    start = _without_comments(text)
    if start.startswith("."):
        line, newline, rest = start.partition("\n")
        return (line.strip(), rest) if newline else None
    place = 0
    for piece in _PIECES.finditer(text):
        if piece[0] == ";":
            statement = text[place : piece.start()]
            if not is_blank(statement):
                return statement.strip(), text[piece.end() :]
            place = piece.end()
    return None


def statements(text: str) -> list[str]:
    """Return all statements and commands; the last one needs no semicolon."""
    found = []
    text += "\n"
    while (taken := take_statement(text)) is not None:
        statement, text = taken
        found.append(statement)
    return found if is_blank(text) else [*found, text.strip()]


def is_complete(text: str) -> bool:
    """Return whether Enter runs this text, instead of beginning another line."""
    command = _without_comments(text).startswith(".")
    return is_blank(text) or command or take_statement(text) is not None


def _without_comments(text: str) -> str:
    """Return the text without comments and white space at its start."""
    found = _COMMENTS.match(text)
    return text[found.end() :] if found else text


def is_blank(text: str) -> bool:
    """Return whether a text holds nothing but semicolons, comments and white space."""
    pieces = (piece[0].strip() for piece in _PIECES.finditer(text))
    return all(piece in ("", ";") or piece.startswith(("--", "/*")) for piece in pieces)
