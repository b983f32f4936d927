"""Caudal's embedded engine."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import caudal
from bench.answers import Answers


@contextlib.contextmanager
def opened() -> Iterator[Callable[[Path], Answers]]:
    """Gives what answers all queries over a folder."""

    def answer(folder: Path) -> Answers:
        found = caudal.run("books", folder, progress=False)
        return {name: found[name].rows() for name in found}

    yield answer
