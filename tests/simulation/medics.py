"""Medics in a world where messages are lost, late and doubled, networks part and medics die.

Everything follows from the seed. Medics are the pure machines of `caudal.medic`; the world only
carries their messages, orders and heartbeats, and their clocks' ticks. Every medic has a host of
its own, and every process is on the host of one medic, which alone can restart it. While hosts are
parted, heartbeats and messages between them are lost, but orders wait in TCP: they arrive when the
hosts meet again, or when a frozen medic wakes up.
"""

import heapq
from dataclasses import dataclass, field
from itertools import count
from random import Random

from caudal.medic import election, supervision
from caudal.medic.election import ElectionMessage, ElectionState, Role
from caudal.medic.supervision import RestartOrder, SupervisionTiming, WatchList
from caudal.process.pulse import HostRecord, Pulse

TICK = 0.1
UNHEARD, LOADING = 1.0, 5.0  # of a process's first seconds
PATIENTS = ("gateway-1", "worker-1", "worker-2")


@dataclass
class Medic:
    """One medic process: its seat in the election, its ward, and whether it runs."""

    seat: ElectionState
    ward: WatchList
    frozen_until: float = 0.0
    dead_until: float | None = None


@dataclass(frozen=True)
class SentOrder:
    """A restart order of a leader, on its way to the medic of the process's host."""

    sender: int
    to: int
    term: int
    order: RestartOrder


@dataclass
class Patient:
    """A process that medics look after."""

    host: int
    incarnation: int = 1
    sequence: int = 0
    dead: bool = False
    frozen: bool = False
    began: float = 0.0


@dataclass
class Report:
    """What happened in a run."""

    elections: int = 0
    leaders_at_once: int = 0
    restarts: int = 0
    needless: int = 0  # restarts of processes that were well
    refused: int = 0  # orders that came too late
    trace: list[str] = field(default_factory=list)


class World:
    """Runs medics for a while under faults, then in peace."""

    def __init__(self, seed: int, medics: int | None = None) -> None:
        self.random = Random(seed)
        count_ = medics or self.random.choice([2, 3, 3, 3, 4, 5])
        self.ids = tuple(range(1, count_ + 1))
        self.now = 0.0
        self.report = Report()
        self.peace = False
        self.loss = self.random.choice([0.0, 0.05, 0.3])
        self.delay = self.random.choice([0.01, 0.2, 1.5])
        self.sees_gone = self.random.random() < 0.5
        self.parts: dict[int, int] = {}  # medic -> its side of a partition
        self._mail: list[tuple[float, int, ElectionMessage | SentOrder]] = []
        self._order = count()
        self.patients = {
            name: Patient(self.ids[number % count_]) for number, name in enumerate(PATIENTS)
        }
        self.medics = {one: self._new(one) for one in self.ids}

    def run(self, seconds: float, *, faults: bool, breaking: bool = True) -> None:
        """Let time pass, tick by tick: a bad network, and unless told otherwise, crashes too."""
        if not faults:
            self._make_peace()
        end = self.now + seconds
        while self.now < end:
            self.now += TICK
            if faults and breaking:
                self._break_something()
            self._deliver()
            self._beat()
            for one, medic in self.medics.items():
                self._live(one, medic)
            leading = sum(
                medic.seat.role is Role.LEADING and self._runs(medic)
                for medic in self.medics.values()
            )
            self.report.leaders_at_once = max(self.report.leaders_at_once, leading)

    def _new(self, one: int) -> Medic:
        others = tuple(other for other in self.ids if other != one)
        seat, said = election.start(one, others, self.now)
        self._send(said)
        ward = supervision.watch_anew(
            supervision.admit(WatchList(), dict.fromkeys(PATIENTS, SupervisionTiming())), self.now
        )
        return Medic(seat, ward)

    def _runs(self, medic: Medic) -> bool:
        return medic.dead_until is None and medic.frozen_until <= self.now

    def _live(self, one: int, medic: Medic) -> None:
        if medic.dead_until is not None:
            if medic.dead_until <= self.now:
                self.medics[one] = self._new(one)
                self._say(f"medic {one} starts")
            return
        if self._runs(medic):
            self._step(medic, election.tick(medic.seat, self.now))
            medic.ward = supervision.attend(medic.ward, self.now)
            self._see_records(one, medic)
            for other, its in self.medics.items():
                if self.sees_gone and its.dead_until is not None and not self._apart(one, other):
                    self._step(medic, election.see_gone(medic.seat, other, self.now))
            if medic.seat.role is Role.LEADING:
                medic.ward, orders = supervision.look(medic.ward, self.now)
                for order in orders:
                    self._order_restart(medic, order)

    def _see_records(self, one: int, medic: Medic) -> None:
        """A medic tells the others what is on record on its host."""
        for name, patient in self.patients.items():
            if self._apart(one, patient.host) or not self._runs(self.medics[patient.host]):
                continue
            gone = patient.dead and self.sees_gone
            stopped = patient.frozen and not patient.dead and self.sees_gone
            age = self.now - patient.began
            record = HostRecord(name, patient.incarnation, age, gone, stopped)
            told = supervision.tell(self.medics[patient.host].ward, record, self.now)
            medic.ward = supervision.see(medic.ward, told, self.now)

    def _apart(self, one: int, other: int) -> bool:
        return self.parts.get(one, 0) != self.parts.get(other, 0)

    def _step(self, medic: Medic, step: election.Step) -> None:
        before, (medic.seat, said) = medic.seat, step
        if medic.seat.role is not before.role:
            self._say(f"medic {before.me} is {medic.seat.role} {medic.seat.term}")
            self.report.elections += medic.seat.role is Role.ELECTING
            if medic.seat.role is Role.LEADING:
                medic.ward = supervision.watch_anew(medic.ward, self.now)
        self._send(said)

    def _order_restart(self, medic: Medic, order: RestartOrder) -> None:
        """Restart a process of the leader's host at once; send an order to another host."""
        host = self.patients[order.name].host
        if host == medic.seat.me:
            self._restart(host, order)
        else:
            sent = SentOrder(medic.seat.me, host, medic.seat.term, order)
            late = 0.01 if self.peace else self.random.random() * self.delay
            heapq.heappush(self._mail, (self.now + late, next(self._order), sent))

    def _restart(self, one: int, order: RestartOrder) -> None:
        patient = self.patients[order.name]
        if patient.incarnation > order.dead:
            return  # the launcher knows a newer one
        well = not patient.dead and not patient.frozen
        self.report.needless += well
        self.report.restarts += 1
        self._say(f"medic {one} restarts {order.name}, {'well' if well else 'dead'}")
        self.patients[order.name] = Patient(one, patient.incarnation + 1, began=self.now)

    def _beat(self) -> None:
        for name, patient in self.patients.items():
            age = self.now - patient.began
            if patient.dead or patient.frozen or age < UNHEARD:
                continue
            patient.sequence += 1
            ready = age >= LOADING
            pulse = Pulse(name, patient.incarnation, patient.sequence, ready=ready)
            if patient.sequence % 5 == 0:
                for one, medic in self.medics.items():
                    if self._runs(medic) and not self._apart(one, patient.host):
                        medic.ward = supervision.hear(medic.ward, pulse, self.now)

    def _send(self, said: list[ElectionMessage]) -> None:
        for message in said:
            if not self.peace and self.random.random() < self.loss:
                continue
            copies = 1 if self.peace or self.random.random() > 0.05 else 2
            for _ in range(copies):
                late = 0.01 if self.peace else self.random.random() * self.delay
                heapq.heappush(self._mail, (self.now + late, next(self._order), message))

    def _deliver(self) -> None:
        while self._mail and self._mail[0][0] <= self.now:
            _, _, message = heapq.heappop(self._mail)
            medic, apart = self.medics[message.to], self._apart(message.sender, message.to)
            if medic.dead_until is not None or (apart and not isinstance(message, SentOrder)):
                continue
            if apart or medic.frozen_until > self.now:  # a kernel keeps it
                again = max(medic.frozen_until, self.now) + TICK
                heapq.heappush(self._mail, (again, next(self._order), message))
                continue
            self._receive(medic, message)

    def _receive(self, medic: Medic, message: ElectionMessage | SentOrder) -> None:
        if isinstance(message, ElectionMessage):
            self._step(medic, election.receive(medic.seat, message, self.now))
        elif message.term >= medic.seat.term and supervision.agrees(
            medic.ward, message.order, self.now
        ):
            self._restart(message.to, message.order)
        else:
            self.report.refused += 1

    def _break_something(self) -> None:
        one = self.random.choice(self.ids)
        medic = self.medics[one]
        roll = self.random.random()
        if roll < 0.01 and medic.dead_until is None:
            medic.dead_until = self.now + self.random.choice([0.5, 3.0, 20.0])
            self._say(f"medic {one} dies")
        elif roll < 0.02 and self._runs(medic):
            medic.frozen_until = self.now + self.random.choice([0.5, 3.0, 20.0])
            self._say(f"medic {one} freezes")
        elif roll < 0.025:
            self.parts = {other: self.random.randrange(2) for other in self.ids}
            self._say(f"parts {self.parts}")
        elif roll < 0.03:
            self.parts = {}
        elif roll < 0.04:
            patient = self.patients[self.random.choice(PATIENTS)]
            patient.dead = True
        elif roll < 0.045:
            self.patients[self.random.choice(PATIENTS)].frozen = True

    def _make_peace(self) -> None:
        self.peace = True
        self.parts = {}
        for medic in self.medics.values():
            medic.frozen_until = min(medic.frozen_until, self.now)
            if medic.dead_until is not None:
                medic.dead_until = self.now

    def _say(self, line: str) -> None:
        self.report.trace.append(f"{self.now:8.1f}  {line}")
