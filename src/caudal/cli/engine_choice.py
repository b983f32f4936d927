"""Choice of the local engine: without a store, or with its progress kept in a store."""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial

from caudal.errors import UsageError
from caudal.local.engines import run_with
from caudal.results.answers import Answers
from caudal.run_options import Engine


@contextlib.contextmanager
def chosen_engine(
    engine: Engine, store: str | None, *, resume: bool
) -> Iterator[Callable[..., Answers]]:
    """Yield the requested engine. If the block succeeds, delete its progress from the store."""
    if store is None:
        if resume:
            raise UsageError("--resume needs the progress of the run: give --store DIR")
        yield partial(run_with, engine)
        return
    if engine is not Engine.SPLIT:
        raise UsageError("--store keeps the progress of the split engine: add --engine split")
    from caudal.local.run import local_run
    from caudal.store import open_store

    with local_run(open_store(store), store, resume=resume) as run:
        yield run.run
