"""Clients that load datasets all the time, are killed and run again, and compare every row.

Each dataset is loaded, appended to from a file and by a program, compacted, and loaded again, which
finds nothing new; then it is deleted. Meanwhile others ask it and watch it (asking.py).
"""

import json
import os
import random
import signal
import subprocess
import sys
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
from tests.acceptance.asking import (
    PATIENCE,
    AskedShelf,
    Asker,
    AskTally,
    KnownAnswers,
    Watcher,
    questions_of,
)
from tests.acceptance.cluster import CAUDAL, Program, RealCluster

_APPEND = ["-m", "tests.acceptance.appending"]
_KEY = "from a program"

Asked = tuple[str, str]  # a query of the application, and a SELECT


@dataclass(frozen=True)
class Shipment:
    """Files of an application, two more for appends, and the rows and answers that they give."""

    app: str
    table: str
    data: Path
    more: tuple[Path, Path]  # the second one is appended by a program
    rows: dict[str, pa.Table]
    known: KnownAnswers

    @classmethod
    def of(cls, app: str, table: str, folder: Path, scale: float, asked: Asked) -> "Shipment":
        """Generated files, and what embedded loads make of them and answer."""
        data, shelf = folder / "data", str(folder / "shelf")
        more = folder / "second.csv", folder / "third.csv"
        generate = ["generate", app, "--scale", str(scale)]
        for seed, out in ((1, data), (3, folder / "three")):
            _caudal(*generate, "--seed", str(seed), "--out", str(out))
        file = f"{table}.csv"
        head, *lines = (data / file).read_bytes().splitlines(keepends=True)
        more[0].write_bytes(head + b"".join(lines[::3]))  # changes every mean
        more[1].write_bytes(_regular((folder / "three" / file).read_bytes()))
        _caudal("load", app, "--data", str(data), "--to", shelf)
        _caudal("load", app, "--file", f"{table}={more[0]}", "--to", shelf)
        subprocess.run(
            [sys.executable, *_APPEND, app, table, str(more[1]), _KEY, shelf], check=True
        )
        files = [data / file, *more]
        known = _known(app, table, asked, data, files, shelf)
        return cls(app, table, data, more, _rows(open_shelf(shelf)), known)

    def steps(self, gateways: str, dataset: str) -> list[tuple[str, list[str]]]:
        """A load, two appends, a compaction, and the load again, which finds nothing new: the
        words behind `python`."""
        where = ["--gateway", gateways, "--dataset", dataset, "--batch-size", "256KiB", *PATIENCE]
        load = [*CAUDAL[1:], "load", self.app, *where]
        whole = [*load, "--data", str(self.data)]
        program = [*_APPEND, self.app, self.table, str(self.more[1]), _KEY, gateways, dataset]
        compact = [*CAUDAL[1:], "compact", dataset, "--gateway", gateways, *PATIENCE]
        return [
            ("loading", whole),
            ("appending", [*load, "--file", f"{self.table}={self.more[0]}"]),
            ("appending by a program", program),
            ("compacting", compact),
            ("loading again", whole),
        ]


def _known(
    app: str, table: str, asked: Asked, data: Path, files: list[Path], shelf: str
) -> KnownAnswers:
    """Answers over the CSV files; over the shelf where files have no such answer."""
    questions = questions_of(app, *asked)
    answers, rows = [], []
    for loads in range(len(files) + 1):
        given = [word for file in files[:loads] for word in ("--file", f"{table}={file}")]
        here = ["--data", str(data), *given]
        there = ["--from", shelf, "--as-of", str(loads)]
        found = [
            _caudal(*one.here, *(here if loads and "rejects" not in one.here[-1] else there),
                    "--format", "json")
            for one in questions
        ]  # fmt: skip
        answers.append(tuple(found))
        rows.append(json.loads(found[1])[asked[0]])
    return KnownAnswers(app, asked[0], questions, tuple(answers), tuple(rows))


def _regular(text: bytes) -> bytes:
    """The lines that have all fields: programs have no others."""
    head, *lines = text.splitlines(keepends=True)
    return head + b"".join(one for one in lines if one.count(b",") == head.count(b","))


@dataclass
class LoadTally:
    """What came of all loads."""

    done: int = 0  # datasets
    carried_out: Counter[str] = field(default_factory=Counter)  # by step
    wrong: int = 0
    failed: list[str] = field(default_factory=list)
    client_kills: Counter[str] = field(default_factory=Counter)  # by step


class LoadStream:
    """One dataset after the other, until asked to stop."""

    def __init__(
        self,
        cluster: RealCluster,
        shipment: Shipment,
        loads: LoadTally,
        asks: AskTally,
        seed: int,
        clients: tuple[Program, ...] = (tuple(CAUDAL),),
    ) -> None:
        self._cluster = cluster
        self._shipment = shipment
        self._loads = loads
        self._asks = asks
        self._clients = clients  # each command is one of these programs'
        self._random = random.Random(seed)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"load-{seed}")
        self._name = f"shelf-{seed}"

    kill = 0.3  # the chance that a client is killed, and the command given again

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
                self._loads.failed.append(f"{self._shipment.app}: {error!r}")

    def _load_one(self, dataset: str) -> None:
        known = self._shipment.known
        shelf = AskedShelf(self._cluster, dataset, known, self._asks, self._clients)
        (first, *others) = self._shipment.steps(self._cluster.gateways, dataset)
        self._carried_out(*first)
        asker, watcher = Asker(shelf, random.Random(self._random.random()), 0.25), Watcher(shelf)
        asker.start()
        watcher.start()
        try:
            for loaded, (step, command) in enumerate(others, 1):
                asker.loaded = min(loaded, len(self._shipment.more) + 1)
                if self._random.random() < self.kill:
                    watcher.kill()
                self._carried_out(step, command)
            place = locate(self._store(), NOBODY, dataset)
            contents = place.contents()
            self._compare(Shelf(dataset, place.below, contents))
            last = contents.number
        except BaseException:
            last = -1
            raise
        finally:
            asker.stop()
            watcher.stop(last)
        delete = [*CAUDAL[1:], "datasets", "delete", dataset, "--gateway", self._cluster.gateways]
        self._carried_out("deleting", [*delete, *PATIENCE])

    def _compare(self, shelf: Shelf) -> None:
        found, wanted = _rows(shelf), self._shipment.rows
        if found.keys() == wanted.keys() and all(
            rows.equals(wanted[table]) for table, rows in found.items()
        ):
            self._loads.done += 1
        else:
            self._loads.wrong += 1

    def _carried_out(self, step: str, words: list[str]) -> None:
        """Run a command; while it is killed, run it again, perhaps by another program."""
        environment = {**os.environ, "NO_COLOR": "1", **self._cluster.environment}
        while True:
            python = self._random.choice(self._clients)[0]
            command = [python, *words]
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
            )
            if self._random.random() < self.kill and step != "deleting":
                time.sleep(self._random.uniform(0.5, 6))
                if process.poll() is None:
                    process.kill()
                    self._loads.client_kills[step] += 1
            told, _ = process.communicate()
            if process.returncode == -signal.SIGKILL:
                continue
            if process.returncode:
                raise AssertionError(f"{step}: exit {process.returncode}: {told.decode()[-2000:]}")
            self._loads.carried_out[step] += 1
            return

    def _store(self) -> Store:
        environment = {**os.environ, **self._cluster.environment}
        place = Cluster.open(self._cluster.folder).store
        settings = S3Settings.from_environment(environment) if "://" in place else None
        return open_store(place, s3=settings)


def _rows(shelf: Shelf) -> dict[str, pa.Table]:
    return {table: arrow_rows(shelf, table).combine_chunks() for table in shelf.contents.tables}


def _caudal(*words: str) -> bytes:
    return subprocess.run([*CAUDAL, *words], check=True, capture_output=True).stdout
