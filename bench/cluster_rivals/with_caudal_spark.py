"""Caudal's Spark engine, in a local session."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import caudal
from bench.answers import Answers
from bench.cluster_rivals.spark_session import local_session


@contextlib.contextmanager
def opened(master: str = "local[2]") -> Iterator[Callable[[Path], Answers]]:
    """A session; gives what answers all queries over a folder."""
    with local_session(master) as session:

        def answer(folder: Path) -> Answers:
            found = caudal.run("books", folder, engine="spark", spark=session, progress=False)
            return {name: found[name].rows() for name in found}

        yield answer
