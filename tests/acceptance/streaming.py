"""Clients that stream jobs all the time, are killed and resumed, and compare every answer."""

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
from pathlib import Path

from tests.acceptance.cluster import CAUDAL, RealCluster

_JOB = re.compile(r"^job ([0-9a-f]+)$", re.MULTILINE)
_PATIENCE = "600"


@dataclass(frozen=True)
class Source:
    """An application's files, and the very bytes that answer its queries."""

    app: str
    data: Path
    answer: bytes

    @classmethod
    def of(cls, app: str, data: Path, scale: float, seed: int = 1) -> "Source":
        """Generated files and the embedded engine's answers over them."""
        generate = ["generate", app, "--scale", str(scale), "--seed", str(seed)]
        subprocess.run([*CAUDAL, *generate, "--out", str(data)], check=True, capture_output=True)
        run = [*CAUDAL, "run", app, "--data", str(data), "--format", "json"]
        answer = subprocess.run(run, check=True, capture_output=True).stdout
        return cls(app, data, answer)


@dataclass
class Tally:
    """What came of all jobs."""

    done: int = 0
    wrong: int = 0
    failed: list[str] = field(default_factory=list)
    client_kills: Counter[str] = field(default_factory=Counter)  # by phase
    seconds: list[float] = field(default_factory=list)
    times: dict[str, list[float]] = field(default_factory=dict)  # of each application's jobs
    moments: list[float] = field(default_factory=list)  # when a right answer was there

    def judge(self, is_right: bool) -> None:
        """Count an answer."""
        if is_right:
            self.done += 1
            self.moments.append(time.monotonic())
        else:
            self.wrong += 1


class Stream:
    """One client after the other, each answering one application, until asked to stop."""

    def __init__(
        self, cluster: RealCluster, sources: list[Source], tally: Tally, seed: int, kill: float
    ) -> None:
        self._cluster = cluster
        self._sources = sources
        self._tally = tally
        self._random = random.Random(seed)
        self._kill = kill  # the chance that a client is killed and resumed
        self._stopping = threading.Event()
        self._abandoned = False
        self._thread = threading.Thread(target=self._run, name=f"stream-{seed}")
        self.phase = "between jobs"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """After the job that is under way."""
        self._stopping.set()
        self._thread.join()

    def abandon(self) -> None:
        """The job that is under way will be killed, and not resumed."""
        self._abandoned = True
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            source = self._random.choice(self._sources)
            began = time.monotonic()
            try:
                self._judge(source, *self._answered(source))
            except Exception as error:
                self._tally.failed.append(f"{source.app}: {error!r}")
            seconds = time.monotonic() - began
            self._tally.seconds.append(seconds)
            self._tally.times.setdefault(source.app, []).append(seconds)
            self.phase = "between jobs"

    def _environment(self) -> Mapping[str, str]:
        return {**os.environ, "NO_COLOR": "1", **self._cluster.environment}

    def _judge(self, source: Source, status: int, answer: bytes, words: str) -> None:
        if status:
            self._tally.failed.append(f"{source.app}: exit {status}: {words[-2000:]}")
        else:
            self._tally.judge(answer == source.answer)

    def _answered(self, source: Source) -> tuple[int, bytes, str]:
        """The client's exit status, answer and words; killed and resumed on the way, perhaps."""
        resume: list[str] = []
        while True:
            killed = self._random.random() < self._kill
            status, answer, words = self._client(source, resume, killed)
            if status != -signal.SIGKILL or self._abandoned:
                return status, answer, words
            found = _JOB.search(words)
            resume = ["--resume", found[1]] if found else resume

    def _client(self, source: Source, resume: list[str], killed: bool) -> tuple[int, bytes, str]:
        more = ["--batch-size", "256KiB", "--patience", _PATIENCE, "--job-timeout", "600"]
        command = self._cluster.submit(source.app, source.data, *more, *resume)
        with tempfile.TemporaryFile() as answer, tempfile.NamedTemporaryFile() as words:
            process = subprocess.Popen(
                command, stdout=answer, stderr=words, env=self._environment()
            )
            deadline = time.monotonic() + self._random.uniform(0.5, 12) if killed else None
            while process.poll() is None:
                self.phase = _phase(Path(words.name).read_text(errors="replace"))
                if deadline is not None and time.monotonic() > deadline:
                    process.kill()
                    self._tally.client_kills[self.phase] += 1
                    deadline = None
                time.sleep(0.05)
            answer.seek(0)
            told = Path(words.name).read_text(errors="replace")
            return process.returncode, answer.read(), told


def _phase(words: str) -> str:
    if "job " not in words:
        return "creating"
    return "answering" if "answered" in words else "sending"
