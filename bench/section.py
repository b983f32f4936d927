"""The parts of docs/benchmarks.md that have a command of their own, each between two marks.

A part that is measured again takes the place of the old one; everything else stays. `make bench`
writes the rest of the page, and keeps what stands from the first mark on.
"""

import os
import re
import shlex
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from bench.machine import describe
from bench.tables import Table, facts

_MARK = re.compile(r"<!-- [a-z ]+ begins -->")


def write(path: Path, name: str, text: str) -> None:
    """Put this part into the page."""
    page = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(written(page, name, text), encoding="utf-8")


def written(page: str, name: str, text: str) -> str:
    """The page with this part in its place, or at its end if it was not there."""
    begin, end = f"<!-- {name} begins -->", f"<!-- {name} ends -->"
    part = f"{begin}\n\n{text.strip()}\n\n{end}"
    old = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if old.search(page):
        return old.sub(lambda _: part, page)
    return f"{page.rstrip()}\n\n{part}\n"


def kept(page: str) -> str:
    """All parts of a page, with their marks."""
    first = _MARK.search(page)
    return page[first.start() :] if first else ""


def load() -> str:
    """How busy the machine is."""
    return f"{os.getloadavg()[0]:.1f}"


def measured(title: str, module: str, began: str, tables: Sequence[Table]) -> str:
    """The text of a part: what was run when, and the tables; `began` is the load before."""
    command = shlex.join(["python", "-m", module, *sys.argv[1:]])
    about = [
        ("Date", date.today().isoformat()),
        *((label, value) for label, value in describe().items() if label == "Processor"),
        ("Load average when it began and ended", f"{began}, {load()}"),
        ("Command", f"`{command}`"),
    ]
    parts = [title, facts(about)]
    for table in tables:
        parts += [f"{table.title[:1].upper()}{table.title[1:]}:", table.markdown()]
    return "\n\n".join(parts)
