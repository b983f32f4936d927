"""A client that loads datasets, asks them and deletes them, all the time."""

import os
import subprocess
import threading
import time
from pathlib import Path

from tests.acceptance.cluster import CAUDAL, RealCluster
from tests.acceptance.streaming import Source, Tally

_PATIENCE = "600"


class DatasetStream:
    """One dataset after the other, until asked to stop. Answers must be those of the files."""

    def __init__(self, cluster: RealCluster, source: Source, tally: Tally) -> None:
        self._cluster = cluster
        self._source = source
        self._tally = tally
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="datasets")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """After the dataset that is under way."""
        self._stopping.set()
        self._thread.join()

    def abandon(self) -> None:
        """What is under way will be killed."""
        self._stopping.set()

    def _run(self) -> None:
        number = 0
        while not self._stopping.is_set():
            number += 1
            began = time.monotonic()
            try:
                self._one(f"shelf-{number}", self._source.data)
            except subprocess.CalledProcessError as error:
                told = error.stderr.decode(errors="replace")[-2000:]
                self._tally.failed.append(f"{error.cmd[3]}: exit {error.returncode}: {told}")
            self._tally.seconds.append(time.monotonic() - began)

    def _one(self, dataset: str, data: Path) -> None:
        app = self._source.app
        self._do("load", app, "--data", str(data), "--dataset", dataset)
        for _ in range(2):  # the second answer is kept from the first
            answer = self._do("submit", app, "--dataset", dataset, "--format", "json")
            self._tally.judge(answer == self._source.answer)
        self._do("datasets", "delete", dataset)

    def _do(self, *words: str) -> bytes:
        where = ["--gateway", self._cluster.gateways, "--patience", _PATIENCE]
        environment = {**os.environ, "NO_COLOR": "1", **self._cluster.environment}
        done = subprocess.run(
            [*CAUDAL, *words, *where], env=environment, check=True, capture_output=True
        )
        return done.stdout
