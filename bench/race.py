"""Running the contestants against each other, one process at a time."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.answers import require_same
from bench.child import Run
from bench.datasets import dataset, total_bytes, warm_page_cache

CONTESTANTS = ("caudal", "duckdb", "polars", "pandas")
WARM_SCALE = 0.001
_ROOT = Path(__file__).parent.parent


class ContestantFailedError(Exception):
    """A contestant ended with an error; the message is what it wrote."""


@dataclass(frozen=True)
class Score:
    """What one contestant took for one application, over all repeats."""

    name: str
    runs: tuple[Run, ...]

    @property
    def wall_seconds(self) -> float:
        return median(run.wall_seconds for run in self.runs)

    @property
    def best_seconds(self) -> float:
        return min(run.wall_seconds for run in self.runs)

    @property
    def cpu_seconds(self) -> float:
        return median(run.cpu_seconds for run in self.runs)

    @property
    def peak_bytes(self) -> int:
        return max(run.peak_bytes for run in self.runs)


@dataclass(frozen=True)
class Race:
    """The scores of all contestants on one application's files."""

    app: str
    scale: float
    bytes: int
    scores: tuple[Score, ...]


def race(
    app: str, scale: float, repeats: int, tell: Callable[[str], None], names: Sequence[str]
) -> Race:
    """Run every contestant `repeats` times; raise when their answers differ."""
    folder, warm_folder = dataset(app, scale), dataset(app, WARM_SCALE)
    warm_page_cache(folder)
    runs: dict[str, list[Run]] = {name: [] for name in names}
    for repeat, name in _rounds(names, repeats):
        run = _run(name, app, folder, warm_folder)
        tell(f"{app} round {repeat + 1} {name}: {run.wall_seconds:.2f} s")
        runs[name].append(run)
        first = next(other for other in names if runs[other])
        require_same(name, run.answers, first, runs[first][0].answers)
    scores = tuple(Score(name, tuple(found)) for name, found in runs.items())
    return Race(app, scale, total_bytes(folder), scores)


def _rounds(names: Sequence[str], repeats: int) -> Iterator[tuple[int, str]]:
    """Everybody once in each round; who begins changes from round to round."""
    for repeat in range(repeats):
        start = repeat % len(names)
        for name in (*names[start:], *names[:start]):
            yield repeat, name


def _run(name: str, app: str, folder: Path, warm_folder: Path) -> Run:
    command = [sys.executable, "-m", "bench.child", name, app, str(folder), str(warm_folder)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ContestantFailedError(f"{name} failed on {app}:\n{done.stderr}")
    return Run(**json.loads(done.stdout))
