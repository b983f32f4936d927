"""Real worker processes: `caudal worker` started, watched through its log, killed for real."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness.freezing import freeze, thaw
from tests.harness.waiting import until


@dataclass
class WorkerProcess:
    """One worker and what it said."""

    process: subprocess.Popen[bytes]
    output: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def lines(self, event: str) -> list[dict[str, Any]]:
        """What it logged of that kind so far."""
        found = [json.loads(line) for line in self.text().splitlines() if line.startswith("{")]
        return [line for line in found if line["event"] == event]

    def text(self) -> str:
        """All that it said; a line that is not complete yet is left out."""
        return self.output.read_text().rpartition("\n")[0]

    def wait_for(self, event: str) -> dict[str, Any]:
        def said() -> dict[str, Any] | None:
            assert self.process.poll() is None or self.lines(event), self.text()
            return next(iter(self.lines(event)), None)

        return until(said)

    def freeze(self) -> None:
        freeze(self.pid)

    def thaw(self) -> None:
        thaw(self.pid)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def terminate(self) -> int:
        """SIGTERM; gives the exit status."""
        self.process.terminate()
        return self.process.wait()


@contextmanager
def working(folder: Path, store: str, broker: str, *options: str) -> Iterator[WorkerProcess]:
    """A worker, ready; killed at the end if it still runs."""
    with starting(folder, store, broker, *options) as worker:
        worker.wait_for("ready")
        yield worker


@contextmanager
def starting(folder: Path, store: str, broker: str, *options: str) -> Iterator[WorkerProcess]:
    """A worker that was just started. The URL with the password goes by the environment."""
    output = folder / f"worker-{len(list(folder.glob('worker-*')))}.log"
    command = [sys.executable, "-m", "caudal", "worker", "--store", store, *options]
    with output.open("wb") as stream:
        process = subprocess.Popen(
            [*_tied_to_us(), *command],
            env={**os.environ, "CAUDAL_BROKER": broker},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    worker = WorkerProcess(process, output)
    try:
        yield worker
    finally:
        worker.kill()


def _tied_to_us() -> list[str]:
    setpriv = shutil.which("setpriv")
    return [] if setpriv is None else [setpriv, "--pdeathsig", "KILL", "--"]
