"""The parts of docs/benchmarks.md that `make bench-cluster` writes, each between two marks.

A part that is measured again takes the place of the old one; everything else stays. `make bench`
writes the rest of the page, and keeps what stands from the first mark on.
"""

import re

_FIRST = "<!-- cluster"


def written(page: str, name: str, text: str) -> str:
    """The page with this part in its place, or at its end if it was not there."""
    begin, end = f"{_FIRST} {name} begins -->", f"{_FIRST} {name} ends -->"
    part = f"{begin}\n\n{text.strip()}\n\n{end}"
    old = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if old.search(page):
        return old.sub(lambda _: part, page)
    return f"{page.rstrip()}\n\n{part}\n"


def kept(page: str) -> str:
    """All parts of a page, with their marks."""
    at = page.find(_FIRST)
    return page[at:] if at >= 0 else ""
