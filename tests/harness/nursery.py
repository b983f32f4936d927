"""Real processes for tests, quick to start: one server loads everything once and forks them.

The server runs no thread of its own, so a fork of it is a sound process.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from caudal.store import MemoryStore
from tests.harness.series_world import World

ROOT = Path(__file__).parents[2]

Job = tuple[Callable[..., None], tuple[object, ...]]


class Nursery:
    """Runs functions in processes of their own."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def run(self, *jobs: Job) -> list[int]:
        """Run all jobs at the same time; gives each one's exit status, or minus its signal."""
        self._connection.send(jobs)
        statuses: list[int] = self._connection.recv()
        return statuses


@contextmanager
def nursery() -> Iterator[Nursery]:
    ours, theirs = multiprocessing.Pipe()
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.harness.nursery", str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        cwd=ROOT,
    )
    theirs.close()
    try:
        yield Nursery(ours)
    finally:
        ours.close()
        server.wait(60)


def _serve(connection: Connection) -> None:
    _warm_up()
    while True:
        try:
            jobs: Sequence[Job] = connection.recv()
        except EOFError:
            return
        children = [_fork(job) for job in jobs]
        statuses = [os.waitpid(child, 0)[1] for child in children]
        connection.send([os.waitstatus_to_exitcode(status) for status in statuses])


def _fork(job: Job) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        function, arguments = job
        function(*arguments)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _warm_up() -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        world.run(MemoryStore(), world.uniform(1))


if __name__ == "__main__":
    _serve(Connection(int(sys.argv[1])))
