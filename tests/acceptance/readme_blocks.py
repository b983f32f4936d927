"""The blocks of commands in README.md, and what comments before them say about running them.

- `<!-- not run: REASON -->`: the block is not executed.
- `<!-- first: COMMAND -->`: a shell command that makes what the block takes for granted.
- `<!-- needs: PACKAGE -->`: a package that users of the block have.

All of these may stand, one to a line, directly before a block of `sh` or `python`.
"""

import re
from dataclasses import dataclass

_BLOCK = re.compile(
    r"^(?P<notes>(?:<!-- [^\n]* -->\n)*)```(?P<language>sh|python)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_NOTE = re.compile(r"<!-- (not run|first|needs): (.+?) -->")


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    first: tuple[str, ...]
    needs: tuple[str, ...]
    not_run: str  # why; empty if it is run


def blocks(page: str) -> list[Block]:
    """Return all blocks of commands, in order."""
    found = []
    for match in _BLOCK.finditer(page):
        notes = _NOTE.findall(match["notes"])
        assert len(notes) == match["notes"].count("\n"), f"unknown comment: {match['notes']}"
        found.append(
            Block(
                match["language"],
                match["text"],
                first=tuple(text for kind, text in notes if kind == "first"),
                needs=tuple(text for kind, text in notes if kind == "needs"),
                not_run="; ".join(text for kind, text in notes if kind == "not run"),
            )
        )
    assert len(found) == len(re.findall(r"^```(?:sh|python)$", page, re.MULTILINE))
    return found
