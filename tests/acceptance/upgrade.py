"""`make upgrade [PREVIOUS=REF]`: a cluster of the previous version becomes one of the present code.

The previous version is the newest tag; as long as there is none, the commit of release 0.1.0.

1. The previous version is built as a wheel from `git archive`, into an environment of its own.
2. Its processes make a cluster. Clients of both versions stream jobs all the time; others load
   datasets, append to them, ask and watch them.
3. Every process is replaced by one of the present code, one after the other, and after each
   replacement a process is killed. Once all processes of a kind are replaced, a job and a question
   must begin and end before the next kind. Then every process is replaced by one of the previous
   version.
4. Every answer and every row of a dataset is compared, byte for byte, with the embedded engine's.
   Workers of release 0.1.0 fail questions that a newer gateway planned, and say that they can be
   asked again. Those are asked again and counted. With any later release none may fail so.

A medic starts processes of its own version. So medics are replaced first: whatever dies later comes
back in the version to which the cluster goes.
"""

import argparse
import contextlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from caudal.cluster.folder import Cluster
from caudal.cluster.roster import Member, MemberKind
from caudal.cluster.upkeep import launcher_of, look
from caudal.medic.supervision import State
from caudal.process.records import read_record
from tests.acceptance.asking import AskTally
from tests.acceptance.chaos import ASKED, ask_lines, load_lines
from tests.acceptance.cluster import RealCluster, running
from tests.acceptance.loading import LoadStream, LoadTally, Shipment
from tests.acceptance.streaming import Source, Stream, Tally
from tests.harness.waiting import until

RELEASE = "8cd9153"  # 0.1.0, which has no tag
ROOT = Path(__file__).parents[2]
FORWARD = (MemberKind.MEDIC, MemberKind.WORKER, MemberKind.GATEWAY)
BACK = (MemberKind.MEDIC, MemberKind.GATEWAY, MemberKind.WORKER)
FAILS_QUESTIONS = "0.1.0"  # the release whose workers fail questions of newer gateways
_LOOK_SECONDS = 0.2
_START = """
import sys
from pathlib import Path
from caudal.cluster.folder import Cluster
from caudal.medic.launcher import LocalLauncher
from caudal.process.records import read_record
cluster = Cluster.open(Path(sys.argv[1]))
member = next(one for one in cluster.here if one.name == sys.argv[2])
record = read_record(cluster.run_folder, member.name)
LocalLauncher(cluster).start(member, record.incarnation if record else 0)
"""


@dataclass(frozen=True)
class Version:
    """An installed version of Caudal."""

    name: str
    python: Path

    @property
    def program(self) -> tuple[str, ...]:
        return (str(self.python), "-m", "caudal")

    @property
    def release(self) -> str:
        """The version that it says of itself."""
        command = [str(self.python), "-c", "import caudal; print(caudal.__version__)"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@dataclass(frozen=True)
class Tallies:
    """What came of all jobs, of all loads, and of all questions to datasets."""

    jobs: Tally = field(default_factory=Tally)
    loads: LoadTally = field(default_factory=LoadTally)
    asks: AskTally = field(default_factory=AskTally)

    def faults(self) -> list[str]:
        """What went wrong, apart from questions that had to be asked again."""
        wrong = self.jobs.wrong + self.loads.wrong
        return [
            *self.jobs.failed,
            *self.loads.failed,
            *self.asks.failed,
            *self.asks.wrong,
            *([f"{wrong} jobs or datasets have wrong rows"] if wrong else []),
        ]

    def counts(self) -> tuple[int, int, int]:
        """How many jobs, and questions of askers and of watchers, have ended."""
        jobs, asks = self.jobs, self.asks
        return (
            jobs.done + len(jobs.failed) + jobs.wrong,
            asks.done.total() + len(asks.failed) + len(asks.wrong),
            asks.watched,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--previous", default="", help="a tag or commit; else the last release")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=0.001)
    parser.add_argument("--rabbit", action="store_true", help="a private RabbitMQ as the broker")
    given = parser.parse_args()
    old, new = built(given.previous or last_release()), Version("present", Path(sys.executable))
    print(f"previous: {old.name}, {old.release}; present: {new.release}; seed {given.seed}")
    more = () if given.rabbit else ("--broker", "embedded")
    with tempfile.TemporaryDirectory(prefix="upgrade-") as name:
        folder = Path(name)
        sources = [Source.of(app, folder / app, given.scale) for app in ("books", "movies")]
        shipment = Shipment.of("movies", "ratings", folder / "load", given.scale, ASKED)
        with running(folder / "cluster", *more, program=old.program) as cluster:
            tallies, clients = Tallies(), (old.program, new.program)
            loads, asks = tallies.loads, tallies.asks
            loader = LoadStream(cluster, shipment, loads, asks, given.seed, clients)
            loader.kill = 0.1
            with streaming(cluster, (old, new), sources, tallies.jobs, given.seed, loader):
                chance = random.Random(given.seed)
                for version, order in ((new, FORWARD), (old, BACK)):
                    go_to(version, order, cluster, tallies, chance)
            told = tallies.jobs
            print(f"jobs done: {told.done}, failed: {len(told.failed)}, wrong: {told.wrong}")
            print("\n".join([*load_lines(loads), *ask_lines(asks)]))
            print(f"questions asked again because of another version: {asks.again}")
            if (faults := tallies.faults()) or (asks.again and old.release != FAILS_QUESTIONS):
                print("\n".join(faults), cluster.words(), sep="\n")
                return 1
    return 0


def last_release() -> str:
    """The newest tag; the commit of release 0.1.0 while there is none."""
    found = _git("tag", "--sort=-creatordate").decode().split()
    return found[0] if found else RELEASE


def built(ref: str) -> Version:
    """Build a wheel of a commit and install it with its own locked packages, once."""
    commit = _git("rev-parse", f"{ref}^{{commit}}").decode().strip()
    home = ROOT / ".venv-previous" / commit[:12]
    python, uv = home / "venv/bin/python", [sys.executable, "-m", "uv"]
    if not (home / "ready").exists():
        shutil.rmtree(home, ignore_errors=True)
        source = home / "source"
        source.mkdir(parents=True)
        archive = home / "source.tar"
        archive.write_bytes(_git("archive", commit))
        _run("tar", "-xf", archive, "-C", source)
        _lend_kernels(source)
        _run(*uv, "venv", "--quiet", "--python", sys.executable, home / "venv")
        install: list[str | Path] = [*uv, "pip", "install", "--quiet", "--python", python]
        _run(*install, "--require-hashes", "-r", source / "requirements.lock")
        _run(*uv, "build", "--quiet", "--wheel", "--out-dir", home / "dist", source)
        _run(*install, "--no-deps", *(home / "dist").glob("*.whl"))
        (home / "ready").touch()
    return Version(f"{ref} ({commit[:7]})", python)


def _lend_kernels(source: Path) -> None:
    """Save the compilation of kernels that are the same in both versions; the build checks."""
    ours = ROOT / "src/caudal/kernels/objects"
    shutil.copytree(ours, source / "src/caudal/kernels/objects", dirs_exist_ok=True)


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def _run(*command: str | Path) -> None:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr[-2000:]}")


@contextlib.contextmanager
def streaming(
    cluster: RealCluster,
    versions: tuple[Version, ...],
    sources: list[Source],
    tally: Tally,
    seed: int,
    loader: LoadStream,
) -> Iterator[None]:
    """A client of each version streams jobs, and one loads; some are killed and go on."""
    streams = [
        Stream(replace(cluster, program=one.program), sources, tally, seed + number, kill=0.1)
        for number, one in enumerate(versions)
    ]
    loader.start()
    for stream in streams:
        stream.start()
    try:
        yield
    finally:
        for stream in streams:
            stream.stop()
        loader.stop()


def go_to(
    version: Version,
    order: tuple[MemberKind, ...],
    cluster: RealCluster,
    tallies: Tallies,
    chance: random.Random,
) -> None:
    """Replace every process, kill one after each, until all are of this version."""
    opened, began, before = Cluster.open(cluster.folder), time.monotonic(), tallies.counts()
    members = [one for kind in order for one in opened.here if one.kind is kind]
    replaced, kills, kind = 0, 0, order[0]
    while left := [one for one in members if not runs(opened, one, version)]:
        if order.index(left[0].kind) > order.index(kind):
            kind = left[0].kind
            wait_for_answers(tallies)
        _run(version.python, "-c", _START, cluster.folder, left[0].name)
        replaced += 1
        wait_until_healthy(opened)
        victim = chance.choice(members)
        kills += launcher_of(opened).kill(victim.name)
        wait_until_healthy(opened)
    wait_for_answers(tallies)
    seconds = time.monotonic() - began
    jobs, asked, watched = (now - then for now, then in zip(tallies.counts(), before, strict=True))
    print(
        f"to {version.name}: {replaced} replaced, {kills} killed; meanwhile {jobs} jobs, {asked} "
        f"questions and {watched} answers of watchers, {seconds:.0f} s",
        flush=True,
    )


def runs(cluster: Cluster, member: Member, version: Version) -> bool:
    """Whether the process of a member is of this version."""
    record = read_record(cluster.run_folder, member.name)
    with contextlib.suppress(OSError):
        if record is not None:
            words = Path(f"/proc/{record.pid}/cmdline").read_bytes().split(b"\0")
            return words[0].decode() == str(version.python)
    return False


def wait_until_healthy(cluster: Cluster) -> None:
    def is_healthy() -> bool:
        told = look(cluster)
        return told is not None and all(one.state == State.HEALTHY for one in told.processes)

    until(is_healthy, pause_seconds=_LOOK_SECONDS)


def wait_for_answers(tallies: Tallies) -> None:
    """Wait until a job and a question have begun and ended, with the processes that there are.

    Several clients send jobs, so the one that ends may have begun before. One client asks.
    """
    jobs, asked, _ = tallies.counts()

    def is_answered() -> bool:
        jobs_now, asked_now, _ = tallies.counts()
        return jobs_now >= jobs + 2 and asked_now >= asked + 2

    until(is_answered, pause_seconds=_LOOK_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
