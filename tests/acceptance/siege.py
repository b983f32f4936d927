"""`make chaos HOSTILE=1`: hostile clients beside honest ones, on a real cluster.

First the honest ones are alone: the calm run. Then the same jobs again, while one owner does all
that `hostile.py` knows. No honest job may fail, give a wrong row, or take more than three times as
long as the slowest calm one of its application. Nobody but the medics restarts anything.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from caudal.cluster.settings import FILE
from caudal.cluster.write_config import write_settings
from caudal.process.tokens import write_private
from tests.acceptance.cluster import RealCluster, free_hundred
from tests.acceptance.hostile import KINDS, Horde
from tests.acceptance.streaming import Source, Stream, Tally

MOST_TIMES = 3.0
_LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class Siege:
    """What to do."""

    seed: int
    jobs: int = 12  # in each of both runs
    clients: int = 2
    scale: float = 0.003
    kinds: tuple[str, ...] = tuple(KINDS)


def besiege(siege: Siege) -> int:
    """The exit status: 0 if all honest jobs were well."""
    with tempfile.TemporaryDirectory(prefix="siege-") as name:
        folder = Path(name)
        sources = [Source.of(app, folder / app, siege.scale) for app in ("books", "movies")]
        with guarded_cluster(folder / "cluster") as (cluster, tokens):
            honest_run(cluster, sources, siege, jobs=siege.clients)  # warms everything up
            calm = honest_run(cluster, sources, siege)
            addresses = [("127.0.0.1", cluster.port + number) for number in (1, 2)]
            began = time.monotonic()
            with Horde(addresses, tokens["hostile"], siege.seed, siege.kinds) as horde:
                storm = honest_run(cluster, sources, siege)
                for line in report(calm, storm):
                    print(line, flush=True)
            for line in attacks(horde):
                print(line, flush=True)
            print(f"duration of the siege: {time.monotonic() - began:.0f} s", flush=True)
            bad = [*storm.failed, *calm.failed]
            if bad or storm.wrong or too_slow(calm, storm):
                print("\n".join(bad), cluster.words(), sep="\n")
                return 1
    return 0


@contextmanager
def guarded_cluster(folder: Path) -> Iterator[tuple[RealCluster, dict[str, str]]]:
    """A cluster with a token for each of two owners; the honest one's is in the environment."""
    port = free_hundred()
    write_settings(folder, port=port, workers=3)  # as docs/security.md says for several owners
    file = folder / FILE
    file.write_text(file.read_text().replace('tokens = ""', 'tokens = "tokens"'))
    cluster = RealCluster(folder, port, {"CAUDAL_TOKEN_FILE": str(folder / "honest.token")})
    tokens = {
        name: cluster.caudal("token", "new", name).stdout.strip() for name in ("honest", "hostile")
    }
    write_private(folder / "honest.token", tokens["honest"])
    try:
        cluster.caudal("up")
        yield cluster, tokens
    finally:
        cluster.caudal("down", "--purge", check=False)


def honest_run(
    cluster: RealCluster, sources: list[Source], siege: Siege, jobs: int | None = None
) -> Tally:
    """Clients that stream jobs until enough are done."""
    tally = Tally()
    streams = [
        Stream(cluster, sources, tally, siege.seed + number, kill=0.0)
        for number in range(siege.clients)
    ]
    for stream in streams:
        stream.start()
    try:
        while sum(map(len, tally.times.values())) < (jobs or siege.jobs):
            time.sleep(_LOOK_SECONDS)
    finally:
        for stream in streams:
            stream.stop()
    return tally


def too_slow(calm: Tally, storm: Tally) -> list[str]:
    """The applications of which a job took too long."""
    return [
        app
        for app, seconds in storm.times.items()
        if app in calm.times and max(seconds) > MOST_TIMES * max(calm.times[app])
    ]


def report(calm: Tally, storm: Tally) -> Iterator[str]:
    """The lines that docs/reliability.md keeps."""
    for app in sorted(calm.times.keys() & storm.times.keys()):
        alone, beside = calm.times[app], storm.times[app]
        yield (
            f"{app}: alone median {statistics.median(alone):.1f} s, most {max(alone):.1f} s "
            f"({len(alone)} jobs); besieged median {statistics.median(beside):.1f} s, most "
            f"{max(beside):.1f} s ({len(beside)}): {max(beside) / max(alone):.1f} times as long"
        )
    for app, seconds in sorted(storm.times.items()):
        yield f"{app} besieged, in this order: {' '.join(f'{one:.1f}' for one in seconds)} s"
    yield f"honest jobs besieged: {storm.done} done, {len(storm.failed)} failed"
    yield f"wrong answers: {storm.wrong}"
    slow = ", ".join(too_slow(calm, storm)) or "none"
    yield f"took more than {MOST_TIMES:g} times as long: {slow}"


def attacks(horde: Horde) -> Iterator[str]:
    for kind, said in horde.said.items():
        told = ", ".join(f"{what} × {count}" for what, count in sorted(said.items()))
        yield f"{kind}: {told or 'nothing'}"
