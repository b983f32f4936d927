"""Restart decisions of the leader, as pure functions of what it has heard.

Rules
1. A process is heard by its heartbeats. After four missed ones it is dead, whether it was killed
   or hangs. A medic on its host reports that its pid is gone, which is quicker and means the same.
   If medics see it stopped (SIGSTOP) for two beats, its silence need not be awaited. They tell
   each other since when, so a medic that has just started, or just won, does not count anew. A
   heartbeat that comes later shows that it runs again: its host's medics may be away by now.
2. No process is suspected before the watcher itself has watched for one full timeout. The watcher
   starts anew when it starts, when it wins an election, and when its own loop was late. A late one
   also forgets since when it saw a process stopped: it may have run meanwhile.
3. A process that was just started has `start` seconds until its first heartbeat, unless its pid
   goes first. This time doubles after every death in a row, for slow machines. After its first
   heartbeat rule 1 applies. It sends heartbeats while it loads, marked as not ready: it is
   `starting` until it is ready. One that announced that it may be silent for longer
   (Pulse.quiet) is dead only after that time; frozen or gone, it is dead as any other.
4. An order without a recorded result after `carry` seconds is given again: it may have been lost,
   or its executor has died. Restarts back off: the first `at_once` come at once, because several
   kills in a row are no fault of the process. Then the pause doubles each time it dies before it
   was healthy for `stable` seconds. A process that died `failing` times in a row, or whose order
   was repeated as often, is shown as failing.
5. Orders name the dead incarnation. A launcher whose process is newer does nothing. So a leader
   that never heard a process must learn its incarnation elsewhere: medics report the records of
   their hosts.
6. An order may arrive long after it was given: a network was parted, or its receiver was frozen. So
   a medic executes the order of another one only if it finds the process dead itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from caudal.process.pulse import HostRecord, Pulse


class State(StrEnum):
    """The state of a process, with the same names in logs, status and documents."""

    STARTING = "starting"  # ordered to start, not ready yet
    HEALTHY = "healthy"
    DEAD = "dead"  # silent or gone; a restart is due
    UNATTENDED = "unattended"  # dead, and no medic of its host can restart it
    FAILING = "failing"  # died several times in a row, or cannot be started


@dataclass(frozen=True)
class SupervisionTiming:
    """Times in seconds."""

    beat: float = 0.5  # between two heartbeats
    silence: float = 2.0  # four missed heartbeats
    stopped: float = 1.0  # of a process that is seen as stopped; it need not be silent
    last_words: float = 2.0  # heartbeats of one that was called dead do not count for so long
    start: float = 8.0  # until the first heartbeat
    start_most: float = 120.0  # the same after many deaths in a row
    stable: float = 3.0  # after being healthy this long, earlier deaths are forgotten
    at_once: int = 4  # restarts in a row without a pause
    back_off: float = 0.5  # first pause; it doubles
    back_off_most: float = 30.0
    failing: int = 5
    carry: float = 3.0  # to execute an order; then it is given again


@dataclass(frozen=True)
class WatchedProcess:
    """The watcher's knowledge of one process."""

    pulse: Pulse | None = None
    heard: float = float("-inf")
    healthy_since: float | None = None
    known: int = 0  # newest incarnation on record on its host
    first: int = 1  # HostRecord.first of it
    begun: float = float("-inf")  # start of that incarnation
    gone: int = -1  # newest incarnation whose pid is known to be gone
    stopped: float | None = None  # since when the newest incarnation is known to be stopped
    buried: int = -1  # newest incarnation that a restart order called dead
    called_dead: float = float("-inf")  # time of the first such order
    ordered: float = float("-inf")  # time of the last one
    repeated: int = 0  # how often that order was given again
    deaths: int = 0  # in a row
    restarts: int = 0
    timing: SupervisionTiming = SupervisionTiming()

    @property
    def newest(self) -> int:
        """Return the newest known incarnation."""
        return max(self.pulse.incarnation if self.pulse else 0, self.known)


@dataclass(frozen=True)
class WatchList:
    """All processes that should run, and since when they are watched."""

    late: float = 1.0  # the watcher's own loop was late if it paused longer
    patients: Mapping[str, WatchedProcess] = field(default_factory=dict)
    watching: float = 0.0
    looked: float = 0.0


def admit(ward: WatchList, timings: Mapping[str, SupervisionTiming]) -> WatchList:
    """Return the list with exactly these processes; what is known of them is kept."""
    return replace(
        ward,
        patients={
            name: replace(ward.patients.get(name, WatchedProcess()), timing=timing)
            for name, timing in timings.items()
        },
    )


def watch_anew(ward: WatchList, now: float) -> WatchList:
    """Start to watch anew: the watcher has just started, or just won an election."""
    return replace(ward, watching=now, looked=now)


def hear(ward: WatchList, pulse: Pulse, now: float) -> WatchList:
    """Handle a heartbeat. Late, doubled and replayed ones change nothing."""
    patient = ward.patients.get(pulse.name)
    if patient is None or pulse.incarnation < patient.known or not _is_news(patient, pulse):
        return ward
    if pulse.incarnation <= patient.buried:
        if now - patient.called_dead < patient.timing.last_words:
            return ward  # a last heartbeat of a process that is being replaced
        patient = replace(patient, buried=pulse.incarnation - 1)  # it was wrongly called dead
    since = _healthy_since(patient, pulse, now)
    is_stable = since is not None and now - since >= patient.timing.stable
    deaths = 0 if is_stable else patient.deaths
    return _with(
        ward,
        pulse.name,
        replace(
            patient,
            pulse=pulse,
            heard=now,
            healthy_since=since,
            deaths=deaths,
            stopped=_still_stopped(patient, pulse, now),
        ),
    )


def _still_stopped(patient: WatchedProcess, pulse: Pulse, now: float) -> float | None:
    """Return since when it is stopped, after a heartbeat that may have been sent before."""
    if patient.stopped is None or pulse.incarnation > patient.newest:
        return None
    return patient.stopped if now - patient.stopped <= patient.timing.beat else None


def _healthy_since(patient: WatchedProcess, pulse: Pulse, now: float) -> float | None:
    if not pulse.ready:
        return None
    same = patient.pulse is not None and patient.pulse.incarnation == pulse.incarnation
    return patient.healthy_since if same and patient.healthy_since is not None else now


def see(ward: WatchList, record: HostRecord, now: float) -> WatchList:
    """A medic on the host of a process tells what is on record there."""
    patient = before = ward.patients.get(record.name)
    if patient is None or record.incarnation < patient.newest:
        return ward
    if record.incarnation > patient.newest:
        began = now - record.age
        patient = replace(
            patient, known=record.incarnation, begun=began, healthy_since=None, stopped=None
        )
    if record.first != patient.first:
        patient = replace(patient, first=record.first)
    if (since := _stopped_since(patient, record, now)) != patient.stopped:
        patient = replace(patient, stopped=since)
    if record.gone and patient.gone != record.incarnation:
        patient = replace(patient, gone=record.incarnation)
    return ward if patient is before else _with(ward, record.name, patient)


def _stopped_since(patient: WatchedProcess, record: HostRecord, now: float) -> float | None:
    """Return the earliest time at which a medic saw it stopped; None if it is not."""
    if not record.stopped:
        return None
    told = now - max(record.stopped_for, 0.0)
    return told if patient.stopped is None else min(told, patient.stopped)


def tell(ward: WatchList, record: HostRecord, now: float) -> HostRecord:
    """Return the record as other medics hear it: with the time since when it is stopped."""
    patient = ward.patients.get(record.name)
    if patient is None or patient.stopped is None or not record.stopped:
        return record
    seconds = int((now - patient.stopped) * 100) / 100  # never more, or each teller would add some
    return replace(record, stopped_for=seconds)


@dataclass(frozen=True)
class RestartOrder:
    """An order to start a process, unless one newer than `dead` runs."""

    name: str
    dead: int


def attend(ward: WatchList, now: float) -> WatchList:
    """Note that the watcher's loop runs; call it in every tick. A late watcher starts anew."""
    if now - ward.looked <= ward.late:
        return replace(ward, looked=now)
    unseen = {name: replace(one, stopped=None) for name, one in ward.patients.items()}
    return watch_anew(replace(ward, patients=unseen), now)


def agrees(ward: WatchList, order: RestartOrder, now: float) -> bool:
    """Return whether a medic that receives this order finds the process dead, too."""
    ward = attend(ward, now)
    patient = ward.patients.get(order.name)
    return patient is not None and _is_dead(ward, patient, now)


def look(ward: WatchList, now: float) -> tuple[WatchList, list[RestartOrder]]:
    """Return what to restart now. Only the leader calls it, several times in every beat."""
    ward, orders = attend(ward, now), []
    for name, patient in ward.patients.items():
        if _is_dead(ward, patient, now) and now - patient.ordered >= _pause(patient):
            orders.append(RestartOrder(name, patient.newest))
            ward = _with(ward, name, _ordered(patient, now))
    return ward, orders


def _ordered(patient: WatchedProcess, now: float) -> WatchedProcess:
    if patient.newest == patient.buried:
        return replace(patient, ordered=now, repeated=patient.repeated + 1)
    return replace(
        patient,
        healthy_since=None,
        buried=patient.newest,
        called_dead=now,
        ordered=now,
        repeated=0,
        deaths=patient.deaths + 1,
        restarts=patient.restarts + 1,
    )


def state_of(ward: WatchList, name: str, now: float) -> State:
    """Return the state as one word, for people."""
    patient = ward.patients[name]
    if patient.deaths >= patient.timing.failing:
        return State.FAILING
    if _is_dead(ward, patient, now):
        if patient.newest != patient.buried:
            return State.DEAD
        return State.FAILING if patient.repeated >= patient.timing.failing else State.STARTING
    return State.STARTING if patient.healthy_since is None else State.HEALTHY


def is_dead(ward: WatchList, name: str, now: float) -> bool:
    """Return whether a restart is due, or ordered and not yet done."""
    return _is_dead(ward, ward.patients[name], now)


def _is_dead(ward: WatchList, patient: WatchedProcess, now: float) -> bool:
    if patient.newest in (patient.gone, patient.buried):
        return True
    if patient.stopped is not None and now - patient.stopped >= patient.timing.stopped:
        return True
    if not _is_heard(patient) and now - patient.begun < _time_to_be_heard(patient):
        return False
    return now - max(patient.heard, ward.watching) >= _silence(patient)


def _is_heard(patient: WatchedProcess) -> bool:
    """Return whether the newest incarnation has sent a heartbeat."""
    return patient.pulse is not None and patient.pulse.incarnation == patient.newest


def _silence(patient: WatchedProcess) -> float:
    """Return the silence after which it is dead."""
    announced = patient.pulse.quiet if patient.pulse and _is_heard(patient) else 0.0
    return max(patient.timing.silence, min(announced, patient.timing.start_most))


def _time_to_be_heard(patient: WatchedProcess) -> float:
    timing = patient.timing
    return min(timing.start * 2.0 ** min(max(patient.deaths - 1, 0), 30), timing.start_most)


def _pause(patient: WatchedProcess) -> float:
    """Return the least time between the last order and the next one."""
    timing = patient.timing
    if patient.newest == patient.buried:
        return timing.carry
    further = patient.deaths - timing.at_once
    return (
        min(timing.back_off * 2.0 ** min(further, 30), timing.back_off_most) if further >= 0 else 0
    )


def _is_news(patient: WatchedProcess, pulse: Pulse) -> bool:
    before = patient.pulse
    if before is None:
        return True
    return (pulse.incarnation, pulse.sequence) > (before.incarnation, before.sequence)


def _with(ward: WatchList, name: str, patient: WatchedProcess) -> WatchList:
    return replace(ward, patients={**ward.patients, name: patient})
