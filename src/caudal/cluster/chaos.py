"""Fault injection: kill or freeze processes of a running cluster, and measure the recovery.

A victim must be alive when it is hit. It has recovered when the medics report a newer incarnation
of it as healthy. This module restarts nothing: that is the medics' work.
"""

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from caudal.cluster.folder import Cluster
from caudal.cluster.roster import Member, MemberKind
from caudal.cluster.settings import FILE
from caudal.cluster.upkeep import launcher_of, look, nobody_answers
from caudal.errors import UsageError
from caudal.formats.medic_status import FaultKind, StatusReply
from caudal.medic.launcher import Launcher
from caudal.medic.supervision import State

_LOOK_SECONDS = 0.1
PATIENCE_SECONDS = 120.0


@dataclass(frozen=True)
class ChaosPlan:
    """The number, targets and kinds of faults."""

    kills: int
    kinds: tuple[MemberKind, ...] = (MemberKind.GATEWAY, MemberKind.WORKER, MemberKind.MEDIC)
    name: str | None = None
    freeze: float = 0.0  # share of hits that freeze instead of kill
    pause_seconds: float = 1.0  # mean time between two strikes
    broker_share: float = 0.1  # share of strikes, if the broker is among the kinds
    several: bool = True  # sometimes hit several at once, all medics but one, or all but one medic
    seed: int | None = None


@dataclass(frozen=True)
class Hit:
    """One victim."""

    name: str
    kind: MemberKind
    way: FaultKind
    incarnation: int
    at: float
    led: bool = False


@dataclass
class Report:
    """What was hit, and how long the recoveries took."""

    hits: Counter[tuple[MemberKind, FaultKind]] = field(default_factory=Counter)
    seconds: dict[tuple[MemberKind, FaultKind], list[float]] = field(default_factory=dict)
    elections: dict[FaultKind, list[float]] = field(
        default_factory=dict
    )  # from a leader's end to a next
    lost: list[str] = field(default_factory=list)  # never recovered

    def lines(self) -> Iterator[str]:
        for (kind, way), count in sorted(self.hits.items()):
            some = self.seconds.get((kind, way), [])
            yield f"{way} {kind}: {count}{f', well after {spread(some)}' if some else ''}"
        for way in FaultKind:
            some = self._well_again({way})
            if some:
                yield f"{way}, all but the broker: well after {spread(some)}"
        if some := self._well_again(set(FaultKind)):
            yield f"all but the broker: well after {spread(some)}"
        for way, some in sorted(self.elections.items()):
            yield f"new leader after one was {way}: {spread(some)} ({len(some)})"
        yield f"left dead: {', '.join(self.lost) or 'none'}"

    def _well_again(self, ways: set[FaultKind]) -> list[float]:
        return [
            one
            for (kind, how), some in self.seconds.items()
            if how in ways and kind is not MemberKind.BROKER
            for one in some
        ]


def spread(seconds: list[float]) -> str:
    """Return median, 99th percentile and maximum as text."""
    return (
        f"median {statistics.median(seconds):.1f} s, 99% within {percentile(seconds, 0.99):.1f} s, "
        f"most {max(seconds):.1f} s"
    )


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def strike(
    cluster: Cluster,
    plan: ChaosPlan,
    told: Callable[[Hit], None] = lambda hit: None,
    counts: Callable[[], bool] = lambda: True,
) -> Report:
    """Strike until `plan.kills` is reached. `counts` is asked before each strike: may it hit now?

    Raise UnreachableError if no medic of this host runs: no victim would be restarted. Raise
    UsageError if this host has nothing that the plan may hit. The report is shorter than the plan
    if nothing could be hit for PATIENCE_SECONDS.
    """
    _require_victims(cluster, plan)
    random, report, waiting = Random(plan.seed), Report(), _Waiting()
    launcher = launcher_of(cluster)
    able = time.monotonic()  # when something was hit, or must not be
    while sum(report.hits.values()) < plan.kills:
        if not _has_medic(cluster, launcher, set()):
            raise nobody_answers(cluster)
        if time.monotonic() - able > PATIENCE_SECONDS:
            break
        _watch(cluster, report, waiting, random.expovariate(1 / plan.pause_seconds))
        if not counts():
            able = time.monotonic()
            continue
        seen = look(cluster)
        for member in _victims(cluster, plan, random):
            way = FaultKind.FREEZE if random.random() < plan.freeze else FaultKind.KILL
            may = _may_be_hit(cluster, launcher, member, waiting.ill)
            hit = _hit(launcher, member, way, seen) if may else None
            if hit is not None:
                able = hit.at
                report.hits[member.kind, way] += 1
                waiting.add(hit)
                told(hit)
    _watch(cluster, report, waiting, PATIENCE_SECONDS, until_well=True)
    report.lost = sorted({hit.name for hit in waiting.ill})
    return report


def _require_victims(cluster: Cluster, plan: ChaosPlan) -> None:
    """Raise UsageError if no process of this host may ever be hit by this plan."""
    kinds = {one.name: one.kind for one in cluster.here}
    wants_broker = plan.name is None and MemberKind.BROKER in plan.kinds
    if wants_broker and MemberKind.BROKER not in kinds.values():
        raise UsageError("this host runs no private broker that could be killed: leave it out")
    able = [
        name
        for name, kind in kinds.items()
        if (kind in plan.kinds if plan.name is None else name == plan.name)
    ]
    if not able:
        wanted = plan.name or " or ".join(plan.kinds)
        raise UsageError(f"this host runs no {wanted}: it has {', '.join(kinds)}")
    medics = [name for name, kind in kinds.items() if kind is MemberKind.MEDIC]
    if able == medics and len(medics) == 1:
        raise UsageError(
            f"{medics[0]} is the only medic of this host, so nothing would restart it: write "
            f"medics = 2 into {FILE}, or kill others"
        )


@dataclass
class _Waiting:
    """Victims that have not recovered, and former leaders without a successor."""

    ill: list[Hit] = field(default_factory=list)
    leaderless: list[Hit] = field(default_factory=list)

    def add(self, hit: Hit) -> None:
        self.ill.append(hit)
        if hit.led:
            self.leaderless.append(hit)

    @property
    def is_over(self) -> bool:
        return not self.ill and not self.leaderless


def _victims(cluster: Cluster, plan: ChaosPlan, random: Random) -> list[Member]:
    """Choose mostly one; sometimes several, all medics but one, or everything but one medic."""
    if plan.name is not None:
        return [one for one in cluster.here if one.name == plan.name]
    able = [one for one in cluster.here if one.kind in plan.kinds]
    brokers = [one for one in able if one.kind is MemberKind.BROKER]
    others = [one for one in able if one.kind is not MemberKind.BROKER]
    if brokers and (not others or random.random() < plan.broker_share):
        return brokers
    able = others
    medics = [one for one in able if one.kind is MemberKind.MEDIC]
    roll = random.random() if plan.several else 1.0
    if roll < 0.03 and len(medics) > 1:
        spared = random.choice(medics)
        return [one for one in able if one != spared]
    if roll < 0.06 and len(medics) > 1:
        return random.sample(medics, len(medics) - 1)
    if roll < 0.15:
        return random.sample(able, min(len(able), random.randint(2, 3)))
    return [random.choice(able)] if able else []


def _may_be_hit(cluster: Cluster, launcher: Launcher, victim: Member, hits: list[Hit]) -> bool:
    """Return whether the victim is healthy and another medic too: it must restart the victim."""
    ill = {hit.name for hit in hits}
    if victim.name in ill:
        return False
    ill.add(victim.name)
    return _has_medic(cluster, launcher, ill)


def _has_medic(cluster: Cluster, launcher: Launcher, without: set[str]) -> bool:
    """Return whether a medic of this host runs that is not in `without`."""
    return any(
        (record := launcher.record(one.name)) is not None and not record.gone
        for one in cluster.here
        if one.kind is MemberKind.MEDIC and one.name not in without
    )


def _hit(
    launcher: Launcher, member: Member, way: FaultKind, seen: StatusReply | None
) -> Hit | None:
    record = launcher.record(member.name)
    if record is None or record.gone or record.stopped:
        return None
    strike_with = launcher.pause if way is FaultKind.FREEZE else launcher.kill
    if not strike_with(member.name):
        return None
    led = seen is not None and seen.leader == member.name
    return Hit(member.name, member.kind, way, record.incarnation, time.monotonic(), led)


def _watch(
    cluster: Cluster,
    report: Report,
    waiting: _Waiting,
    seconds: float,
    *,
    until_well: bool = False,
) -> None:
    """Wait, and note recovered processes and new leaders."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not (until_well and waiting.is_over):
        told = None if waiting.is_over else look(cluster)
        now = time.monotonic()
        if told is not None:
            _note_leader(told, report, waiting.leaderless, now)
            _note_recovered(told, report, waiting.ill, now)
        time.sleep(max(0.0, min(_LOOK_SECONDS, deadline - time.monotonic())))


def _note_leader(told: StatusReply, report: Report, leaderless: list[Hit], now: float) -> None:
    newest = {one.name: one.incarnation for one in told.processes}
    for hit in list(leaderless):
        other = told.leader and told.leader != hit.name
        again = told.leader == hit.name and newest.get(hit.name, 0) > hit.incarnation
        if told.medic == told.leader and (other or again):
            report.elections.setdefault(hit.way, []).append(now - hit.at)
            leaderless.remove(hit)


def _note_recovered(told: StatusReply, report: Report, ill: list[Hit], now: float) -> None:
    well = {one.name: one.incarnation for one in told.processes if one.state == State.HEALTHY}
    for hit in list(ill):
        if well.get(hit.name, 0) > hit.incarnation:
            report.seconds.setdefault((hit.kind, hit.way), []).append(now - hit.at)
            ill.remove(hit)
