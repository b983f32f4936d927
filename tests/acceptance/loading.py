"""Clients that load datasets all the time, are killed and run again, and compare every row."""

import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from caudal.cluster.folder import Cluster
from caudal.datasets.cluster_place import locate
from caudal.datasets.shelf import Shelf, open_shelf
from caudal.embedded.dataset_rows import arrow_rows
from caudal.formats.tokens import NOBODY
from caudal.store import S3Settings, Store, open_store
from tests.acceptance.cluster import CAUDAL, RealCluster

_PATIENCE = "600"


@dataclass(frozen=True)
class Shipment:
    """Files of an application, one more of them for an append, and the rows that they give."""

    app: str
    data: Path
    table: str
    more: Path
    rows: dict[str, pa.Table]

    @classmethod
    def of(cls, app: str, folder: Path, table: str, file: str, scale: float) -> "Shipment":
        """Generated files, and what an embedded load and an append make of them."""
        data, other = folder / "data", folder / "other"
        for seed, out in ((1, data), (2, other)):
            generate = ["generate", app, "--scale", str(scale), "--seed", str(seed)]
            _caudal(*generate, "--out", str(out))
        more, shelf = other / file, folder / "shelf"
        _caudal("load", app, "--data", str(data), "--to", str(shelf))
        _caudal("load", app, "--file", f"{table}={more}", "--to", str(shelf))
        return cls(app, data, table, more, _rows(open_shelf(str(shelf))))

    def commands(self, gateways: str, dataset: str) -> list[list[str]]:
        """A load, an append, and the load again, which finds nothing new."""
        where = ["--gateway", gateways, "--dataset", dataset, "--batch-size", "256KiB"]
        words = [*CAUDAL, "load", self.app, *where, "--patience", _PATIENCE]
        whole = [*words, "--data", str(self.data)]
        return [whole, [*words, "--file", f"{self.table}={self.more}"], whole]


@dataclass
class LoadTally:
    """What came of all loads."""

    done: int = 0
    wrong: int = 0
    failed: list[str] = field(default_factory=list)
    client_kills: Counter[str] = field(default_factory=Counter)  # by the step of the load


class LoadStream:
    """One dataset after the other, until asked to stop."""

    def __init__(
        self, cluster: RealCluster, shipment: Shipment, tally: LoadTally, seed: int, kill: float
    ) -> None:
        self._cluster = cluster
        self._shipment = shipment
        self._tally = tally
        self._random = random.Random(seed)
        self._kill = kill  # the chance that a client is killed, and the command given again
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"load-{seed}")
        self._name = f"shelf-{seed}"
        self.phase = "between jobs"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """After the dataset that is under way."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._stopping.is_set():
            number += 1
            try:
                self._load_one(f"{self._name}-{number}")
            except Exception as error:
                self._tally.failed.append(f"{self._shipment.app}: {error!r}")
            self.phase = "between jobs"

    def _load_one(self, dataset: str) -> None:
        steps = ("loading", "appending", "loading again")
        commands = self._shipment.commands(self._cluster.gateways, dataset)
        for step, command in zip(steps, commands, strict=True):
            self.phase = step
            self._carried_out(step, command)
        place = locate(self._store(), NOBODY, dataset)
        found = _rows(Shelf(dataset, place.below, place.contents()))
        if found.keys() == self._shipment.rows.keys() and all(
            rows.equals(self._shipment.rows[table]) for table, rows in found.items()
        ):
            self._tally.done += 1
        else:
            self._tally.wrong += 1
        self.phase = "deleting"
        self._carried_out(
            "deleting",
            [*CAUDAL, "datasets", "delete", dataset, "--gateway", self._cluster.gateways,
             "--patience", _PATIENCE],
        )  # fmt: skip

    def _carried_out(self, step: str, command: list[str]) -> None:
        """Run a command; while it is killed, run it again."""
        environment = {**os.environ, "NO_COLOR": "1", **self._cluster.environment}
        while True:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
            )
            if self._random.random() < self._kill and step != "deleting":
                time.sleep(self._random.uniform(0.5, 6))
                if process.poll() is None:
                    process.kill()
                    self._tally.client_kills[step] += 1
            told, _ = process.communicate()
            if process.returncode == -signal.SIGKILL:
                continue
            if process.returncode:
                raise AssertionError(f"exit {process.returncode}: {told.decode()[-2000:]}")
            return

    def _store(self) -> Store:
        environment = {**os.environ, **self._cluster.environment}
        place = Cluster.open(self._cluster.folder).store
        settings = S3Settings.from_environment(environment) if "://" in place else None
        return open_store(place, s3=settings)


def _rows(shelf: Shelf) -> dict[str, pa.Table]:
    return {table: arrow_rows(shelf, table).combine_chunks() for table in shelf.contents.tables}


def _caudal(*words: str) -> None:
    subprocess.run([*CAUDAL, *words], check=True, capture_output=True)
