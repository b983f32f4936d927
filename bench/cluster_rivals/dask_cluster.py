"""Two Dask workers of one thread each, on this machine."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from distributed import Client, LocalCluster  # type: ignore[import-not-found]

from bench.answers import Answers
from bench.cluster_rivals import books

Answer = Callable[[Path], Answers]


def opened_with(answer: Answer) -> Callable[[], contextlib.AbstractContextManager[Answer]]:
    """A context that starts the workers and gives what answers by them."""

    @contextlib.contextmanager
    def opened() -> Iterator[Answer]:
        with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
            ) as cluster,
            Client(cluster) as client,
        ):
            client.run(books.warm)
            yield answer

    return opened
