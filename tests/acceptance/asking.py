"""Clients that ask a dataset all the time, are killed and ask again, and compare every answer.

The dataset grows meanwhile. An answer names the version that it is of; its bytes must be those of
the embedded engine over the rows of that version.
"""

import json
import os
import random
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

from caudal.formats.outcomes import PLANNED_ELSEWHERE
from tests.acceptance.cluster import CAUDAL, Program, RealCluster

PATIENCE = ["--patience", "600"]
_VERSION = re.compile(r": version (\d+)$", re.MULTILINE)
_PAUSES = 0.5, 6.0  # seconds before a client is killed


@dataclass(frozen=True)
class DatasetQuestion:
    """A question: the command here, and the one to a cluster."""

    here: tuple[str, ...]
    there: tuple[str, ...]


@dataclass(frozen=True)
class KnownAnswers:
    """What the embedded engine answers, by the number of loads that a version has."""

    app: str
    watched: str  # the query that is watched
    questions: tuple[DatasetQuestion, ...]
    answers: tuple[tuple[bytes, ...], ...]  # by number of loads and question
    rows: tuple[Any, ...]  # of the watched query, by number of loads

    def loads(self, version: int) -> int:
        """How many loads a version has: a compaction adds none."""
        return min(version, len(self.rows) - 1)


def questions_of(app: str, query: str, select: str) -> tuple[DatasetQuestion, ...]:
    """All queries, one of them, and SELECTs, one of them over the rejected rows."""
    rejected = 'SELECT "table", reason, count(*) AS n FROM rejects GROUP BY ALL ORDER BY ALL'
    given = [
        (("run", app), ("submit", app)),
        (("run", app, "-q", query), ("submit", app, "-q", query)),
        *((("sql", app, one), ("sql", app, one)) for one in (select, rejected)),
    ]
    return tuple(DatasetQuestion(*one) for one in given)


@dataclass
class AskTally:
    """What came of all questions."""

    done: Counter[str] = field(default_factory=Counter)  # by command, and newest or older version
    watched: int = 0  # answers of watchers
    wrong: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    client_kills: Counter[str] = field(default_factory=Counter)
    again: int = 0  # questions that nobody of their version computed, so they were asked again


@dataclass(frozen=True)
class AskedShelf:
    """The dataset of a cluster that is asked."""

    cluster: RealCluster
    name: str
    known: KnownAnswers
    tally: AskTally
    clients: tuple[Program, ...] = (tuple(CAUDAL),)

    @property
    def way(self) -> list[str]:
        return ["--gateway", self.cluster.gateways, "--dataset", self.name, "--format", "json"]

    @property
    def environment(self) -> Mapping[str, str]:
        return {**os.environ, "NO_COLOR": "1", **self.cluster.environment}


class Asker:
    """One question after the other, until asked to stop."""

    def __init__(self, shelf: AskedShelf, chance: random.Random, kill: float) -> None:
        self._shelf = shelf
        self._chance = chance
        self._kill = kill
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"ask-{shelf.name}")
        self.loaded = 0  # the newest version that a loader was told of

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """After the question that is under way."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            place = self._chance.randrange(len(self._shelf.known.questions))
            as_of = self._chance.choice((None, self._chance.randint(0, self.loaded)))
            try:
                self._ask(place, as_of)
            except Exception as error:
                self._shelf.tally.failed.append(f"question {place} as of {as_of}: {error!r}")

    def _ask(self, place: int, as_of: int | None) -> None:
        shelf, least = self._shelf, self.loaded
        question = shelf.known.questions[place]
        client = self._chance.choice(shelf.clients)
        command = [*client, *question.there, *shelf.way, *PATIENCE]
        command += [] if as_of is None else ["--as-of", str(as_of)]
        status, answer, words = self._answered(command)
        found = _VERSION.search(words)
        if status or found is None:
            shelf.tally.failed.append(f"{command}: exit {status}: {words[-2000:]}")
            return
        version = int(found[1])
        told = f"{' '.join(question.there)} as of {as_of}: version {version}, {answer[:300]!r}"
        if version != as_of if as_of is not None else version < least:
            shelf.tally.wrong.append(f"another version than asked ({least} is loaded): {told}")
        elif answer != shelf.known.answers[shelf.known.loads(version)][place]:
            shelf.tally.wrong.append(f"other rows: {told}")
        else:
            when = "the newest version" if as_of is None else "a named version"
            shelf.tally.done[f"{question.there[0]} at {when}"] += 1

    def _answered(self, command: list[str]) -> tuple[int, bytes, str]:
        """Ask; while the client is killed, or told to, ask again."""
        while True:
            with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as words:
                process = subprocess.Popen(
                    command, stdout=answer, stderr=words, env=self._shelf.environment
                )
                if self._chance.random() < self._kill:
                    time.sleep(self._chance.uniform(*_PAUSES))
                    process.kill()
                status = process.wait()
                if status == -signal.SIGKILL:
                    self._shelf.tally.client_kills["asking"] += 1
                    continue
                answer.seek(0)
                words.seek(0)
                told = words.read().decode()
                if status and _must_ask_again(told):
                    self._shelf.tally.again += 1
                    continue
                return status, answer.read(), told


class Watcher:
    """`caudal watch` all the time; every line is compared. It must see the last version."""

    def __init__(self, shelf: AskedShelf) -> None:
        self._shelf = shelf
        self._thread = threading.Thread(target=self._run, name=f"watch-{shelf.name}")
        self._process: subprocess.Popen[bytes] | None = None
        self._seen = -1
        self._clients = cycle(shelf.clients)
        self._last: int | None = None  # stop when this version was seen

    def start(self) -> None:
        self._thread.start()

    def kill(self) -> None:
        """Kill the client; it is started again."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._shelf.tally.client_kills["watching"] += 1

    def stop(self, last: int) -> None:
        """After it has seen this version."""
        self._last = last
        if self._is_over() and self._process is not None:
            self._process.kill()
        self._thread.join()

    def _is_over(self) -> bool:
        return self._last is not None and self._seen >= self._last

    def _run(self) -> None:
        shelf = self._shelf
        words = ["watch", shelf.known.app, shelf.known.watched, *shelf.way, *PATIENCE]
        while not self._is_over():
            with tempfile.NamedTemporaryFile() as errors:
                self._process = subprocess.Popen(
                    [*next(self._clients), *words],
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=shelf.environment,
                )
                self._judge_lines(self._process)
                status = self._process.wait()
                told = Path(errors.name).read_text(errors="replace")[-2000:]
                if _must_ask_again(told):
                    shelf.tally.again += 1
                elif status != -signal.SIGKILL:
                    shelf.tally.failed.append(f"the watcher ended with {status}: {told}")
                    time.sleep(1)

    def _judge_lines(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        old, last = None, -1
        with process.stdout as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    continue  # killed while it wrote
                told = json.loads(line)
                self._judge(told, old, last)
                old, last = told["rows"], told["version"]
                self._seen = max(self._seen, last)
                if self._is_over():
                    process.kill()

    def _judge(self, told: dict[str, Any], old: Any, last: int) -> None:
        tally, known, version = self._shelf.tally, self._shelf.known, told["version"]
        if version <= last:
            tally.wrong.append(f"the watcher saw version {version} after {last}")
        elif version < self._seen:
            tally.wrong.append(f"a new watcher saw version {version}, one before {self._seen}")
        elif told["rows"] != known.rows[known.loads(version)]:
            tally.wrong.append(f"the watcher saw other rows: {told}")
        elif old is not None and not _follows(old, told):
            tally.wrong.append(f"what the watcher marked does not make {old} into {told}")
        else:
            tally.watched += 1


def _must_ask_again(words: str) -> bool:
    return PLANNED_ELSEWHERE in " ".join(words.split())


def _follows(old: list[Any], told: dict[str, Any]) -> bool:
    """Whether the old rows without those that are gone, and with those that were added, are new."""
    before = Counter(json.dumps(row) for row in old)
    gone = Counter(json.dumps(row) for row in told["gone"])
    added = Counter(json.dumps(told["rows"][place]) for place in told["added"])
    after = Counter(json.dumps(row) for row in told["rows"])
    return not gone - before and before - gone + added == after
