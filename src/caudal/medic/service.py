"""A medic: receives heartbeats, takes part in elections and, if it leads, orders restarts.

One asyncio loop does everything that is quick. Process starts and broker checks run in threads.
The decisions are pure functions (medic/election.py, medic/supervision.py); this module has only
sockets, clocks and files. If the loop of a medic pauses too long, the medic is late; both state
machines handle that.
"""

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

import msgspec

from caudal.cluster import rabbit_node
from caudal.cluster.compare_settings import digests_of
from caudal.cluster.folder import Cluster
from caudal.cluster.roster import Member, MemberKind, digest_of, medics
from caudal.decoding import json_decoder
from caudal.errors import CaudalError, UsageError
from caudal.formats.frame import JSON_ERRORS
from caudal.formats.medic_status import ProcessStatus, StatusReply
from caudal.medic import election, supervision
from caudal.medic.complaints import Complaints
from caudal.medic.election import ElectionState, Role
from caudal.medic.launcher import Launcher
from caudal.medic.loop import TICK_SECONDS, LoopTicks, open_ear
from caudal.medic.order_age import OwnBeats
from caudal.medic.record_share import records_of_beat
from caudal.medic.strikes import refusal_of_strike
from caudal.medic.supervision import RestartOrder, State, SupervisionTiming, WatchList
from caudal.medic.talk import (
    ElectionWord,
    MedicLink,
    StartOrder,
    StatusRequest,
    StrikeOrder,
    StrikeReply,
    Words,
    serve,
)
from caudal.process.heart import PACKET_MOST, Heart, Heartbeat, HeartSession
from caudal.process.logs import fields
from caudal.process.pulse import HostRecord, Pulse
from caudal.process.ticks import Tick, next_moment

BEAT_SECONDS = 0.5
_HEARD_AT_ONCE = 64  # heartbeats in one turn of the loop
_QUICK_BEATS = 5  # at the start, because medics answer the first heartbeat with their sessions
_CLOSELY_SECONDS = 0.6  # silence before `stopped` is checked; a broker is always checked
_SLOW_SECONDS = 5.0
_BROKER = SupervisionTiming(
    silence=10.0, start=90.0
)  # it boots slowly, and its answer to the check may take long
_CONTAINER = SupervisionTiming(start=60.0)  # the engine tells of those that end or are paused
_DECODER: msgspec.json.Decoder[Heartbeat] = json_decoder(Heartbeat)

_log = logging.getLogger(__name__)


@dataclass
class Medic:
    """One medic of a cluster."""

    me: Member
    cluster: Cluster
    launcher: Launcher
    heart: Heart
    session: str = field(default_factory=lambda: secrets.token_hex(8))
    _links: dict[int, MedicLink] = field(default_factory=dict)
    _busy: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _number: int = 0
    _greeted: dict[str, Pulse] = field(default_factory=dict)  # brokers, since the last beat
    _sent: OwnBeats = field(default_factory=OwnBeats)
    complaints: Complaints = field(default_factory=Complaints)

    def __post_init__(self) -> None:
        now = time.monotonic()
        others = tuple(one.number for one in medics(self.cluster.members) if one != self.me)
        self.seat, self._first_words = election.start(self.me.number, others, now)
        self.ward = supervision.watch_anew(self._admitted(WatchList()), now)
        self._born = now
        self._digests = self._digested()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until asked to stop."""
        self._warn()
        loop = asyncio.get_running_loop()
        seal = self.heart.seal
        try:
            ear = self._ear = await open_ear(self.me.address, self.me.port)
            with contextlib.ExitStack() as held:
                held.callback(ear.close)
                where = self.me.address, self.me.port
                server = await serve(*where, seal, self._answer, self._strange)
                held.pop_all()
        except OSError as error:
            what = f"port {self.me.port} (TCP and UDP) of {self.me.address}"
            raise UsageError(f"cannot listen on {what}: {error.strerror or error}") from error
        loop.add_reader(ear, self._listen)
        for one in medics(self.cluster.members):
            if one != self.me:
                self._links[one.number] = MedicLink(one.address, one.port, seal)
        tasks = [asyncio.create_task(link.keep()) for link in self._links.values()]
        tasks += [asyncio.create_task(each()) for each in (self._beats, self._slowly)]
        ticks = LoopTicks(self._tick)
        self._send(self._first_words)
        ended = asyncio.create_task(stop.wait())
        try:
            waits: set[asyncio.Future[Any]] = {ended, ticks.broken, *tasks}
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # if a loop fails, the medic fails and is started again
        finally:
            ticks.stop()
            for task in (ended, *tasks, *self._busy.values()):
                task.cancel()
            await asyncio.gather(*tasks, *self._busy.values(), return_exceptions=True)
            server.close()
            loop.remove_reader(ear)
            ear.close()

    def _tick(self) -> None:
        now = time.monotonic()
        self._step(election.tick(self.seat, now), now)
        records = self._records()
        self._see(records, now)
        self._miss(records, now)
        self.ward = supervision.attend(self.ward, now)
        if self.seat.role is Role.LEADING:
            self.ward, orders = supervision.look(self.ward, now)
            for order in orders:
                self._order(order)

    async def _beats(self) -> None:
        while True:
            self._number += 1
            detail = f"{self.seat.role} {self.seat.term}"
            greeted, self._greeted = list(self._greeted.values()), {}
            mine = digest_of(self.cluster.members)
            tick, began = Tick(self._number, 0.0), time.monotonic()
            records = [supervision.tell(self.ward, one, began) for one in self._records()]
            records = records_of_beat(records, self._number)
            pulse = self.heart.beat(tick, detail, records, greeted, mine, settings=self._digests)
            self._hear(pulse)
            self._sent.note(pulse, began)  # not later than it was sent, whatever froze meanwhile
            for member in self.cluster.here:
                if member.kind is MemberKind.BROKER:
                    self._in_background(f"greet {member.name}", self._greet(member))
            is_new, now = self._number <= _QUICK_BEATS, time.monotonic()
            beat = next_moment(now, BEAT_SECONDS) - now
            await asyncio.sleep(TICK_SECONDS if is_new else beat)

    async def _slowly(self) -> None:
        """Follow changes of the settings, stop removed processes, and shorten logs."""
        while True:
            await asyncio.sleep(_SLOW_SECONDS)
            self._reread()
            self.launcher.keep_logs_short()
            here = {one.name for one in self.cluster.here}
            for name in self.launcher.names():
                if name not in here:
                    _log.info("stopping a removed process", extra=fields(process=name))
                    self._in_background(f"stop {name}", self._removed(name))

    async def _removed(self, name: str) -> None:
        """Stop a process that cluster.toml does not name any more, and remove what it had."""
        try:
            await asyncio.to_thread(self.launcher.stop, name, 12.0)
            await asyncio.to_thread(self.launcher.remove, name)
        except CaudalError as error:
            _log.error("stop failed", extra=fields(process=name, reason=str(error)))

    def _reread(self) -> None:
        """Read the settings again. What may not change while anything runs keeps its value
        (start_note.py).
        """
        try:
            cluster = Cluster.open(self.cluster.folder, self.cluster.host)
        except Exception as error:  # a person may be editing the file
            _log.warning("cluster.toml is invalid", extra=fields(reason=str(error)))
            return
        before, self.cluster = self.cluster, cluster
        if cluster.strayed != before.strayed:
            self._warn()
        if cluster.settings != before.settings:
            _log.info("cluster.toml has changed")
            self.launcher.follow(cluster)
            self.ward = self._admitted(self.ward)
        self._digests = self._digested()

    def _digested(self) -> dict[str, str]:
        settings, password = self.cluster.settings, self.cluster.known_password
        return digests_of(settings, self.heart.seal, password)

    def _warn(self) -> None:
        """Warn that the file is not applied: processes keep the settings of their start."""
        if self.cluster.strayed:
            _log.warning("settings not applied: %s", self.cluster.strayed)

    def _admitted(self, ward: WatchList) -> WatchList:
        kinds = {MemberKind.BROKER: _BROKER}
        usual = _CONTAINER if self.cluster.settings.launcher == "docker" else SupervisionTiming()
        timings = {one.name: kinds.get(one.kind, usual) for one in self.cluster.members}
        return supervision.admit(ward, timings)

    # Heartbeats

    def _listen(self) -> None:
        """Receive waiting heartbeats; the rest follows in the loop's next turn."""
        with contextlib.suppress(OSError):
            for _ in range(_HEARD_AT_ONCE):
                data, sender = self._ear.recvfrom(PACKET_MOST + 1)
                self.hear(data, sender)

    def hear(self, data: bytes, sender: tuple[str, int]) -> None:
        payload = self.heart.seal.open(data)
        if payload is None or len(data) > PACKET_MOST:
            self._strange(sender[0])
            return
        try:
            beat = _DECODER.decode(payload)
        except JSON_ERRORS:
            self.complaints.not_readable(sender[0], time.monotonic())
            return
        if beat.session != self.session:
            answer = msgspec.json.encode(HeartSession(self.session))
            self._ear.sendto(self.heart.seal.close(answer), sender)
            return
        for pulse in (beat.pulse, *beat.greeted):
            self._hear(pulse)
        self.complaints.compare(self.me.host, self.cluster.members, self._digests, beat)
        self._see(beat.records, time.monotonic())

    def _strange(self, address: str) -> None:
        """Note a heartbeat, or a message over TCP, that does not verify."""
        self.complaints.not_verified(address, time.monotonic())

    def _hear(self, pulse: Pulse) -> None:
        self.ward = supervision.hear(self.ward, pulse, time.monotonic())

    def _see(self, records: list[HostRecord], now: float) -> None:
        for record in records:
            self.ward = supervision.see(self.ward, record, now)

    def _records(self) -> list[HostRecord]:
        """What is on record here. One that was heard just now is not stopped."""
        now = time.monotonic()
        closely = {
            one.name
            for one in self.cluster.here
            if one.kind is MemberKind.BROKER
            or now - self.ward.patients[one.name].heard > _CLOSELY_SECONDS
        }
        return self.launcher.records([one.name for one in self.cluster.here], closely)

    async def _greet(self, broker: Member) -> None:
        record = self.launcher.record(broker.name)
        if record is None or record.gone:
            return
        if await asyncio.to_thread(rabbit_node.greets, broker.address, broker.port):
            known = self.ward.patients[broker.name].pulse
            sequence = known.sequence + 1 if known else 1
            pulse = Pulse(broker.name, record.incarnation, sequence)
            self._hear(pulse)
            self._greeted[broker.name] = pulse  # medics of other hosts hear it from this one

    # Elections

    def _step(self, step: election.Step, now: float) -> None:
        before, (self.seat, said) = self.seat, step
        if self.seat.role is not before.role or self.seat.leader != before.leader:
            self._tell(self.seat)
            if self.seat.role is Role.LEADING:
                self.ward = supervision.watch_anew(self.ward, now)
        self._send(said)

    def _miss(self, records: list[HostRecord], now: float) -> None:
        """A leader of this host whose pid is gone is missed at once."""
        gone = {record.name for record in records if record.gone}
        for one in medics(self.cluster.members):
            if one.name in gone:
                self._step(election.see_gone(self.seat, one.number, now), now)

    def _send(self, said: list[election.ElectionMessage]) -> None:
        for one in said:
            if one.to in self._links:
                self._links[one.to].say(ElectionWord(one.kind, one.sender, one.to, one.term))

    def _tell(self, seat: ElectionState) -> None:
        extra = fields(role=seat.role.value, term=seat.term, leader=self._leader())
        _log.info("role changed", extra=extra)

    def _leader(self) -> str:
        found = (one.name for one in medics(self.cluster.members) if one.number == self.seat.leader)
        return next(found, "")

    # Orders

    def _order(self, order: RestartOrder) -> None:
        member = next(one for one in self.cluster.members if one.name == order.name)
        executor = self._executor(member.host)
        if executor is None:
            self.complaints.unattended(member)
            return
        self.complaints.attended(member)
        extra = fields(process=order.name, dead=order.dead, by=executor.name)
        _log.warning("restart ordered", extra=extra)
        if executor == self.me:
            self._start(order)
        else:
            pulse = self.ward.patients[executor.name].pulse
            heard = (pulse.incarnation, pulse.sequence) if pulse else None
            words = StartOrder(order.name, order.dead, self.seat.term, heard)
            self._links[executor.number].say(words)

    def _executor(self, host: str) -> Member | None:
        """Return this medic if it is on that host, else a healthy medic of that host."""
        now = time.monotonic()
        there = [one for one in medics(self.cluster.members) if one.host == host]
        if self.me in there:
            return self.me
        alive = (
            one for one in there if supervision.state_of(self.ward, one.name, now) is State.HEALTHY
        )
        return next(alive, None)

    def _obey(self, words: StartOrder, now: float) -> None:
        """Execute the order of another medic, unless it came too late."""
        order = RestartOrder(words.name, words.dead)
        refusal = self._refusal(words, order, now)
        if refusal:
            about = fields(process=order.name, dead=order.dead, term=words.term, reason=refusal)
            _log.warning("order refused", extra=about)
        else:
            self._start(order)

    def _refusal(self, words: StartOrder, order: RestartOrder, now: float) -> str:
        """Return why an order of another medic is not executed; "" if it is."""
        if words.term is not None and words.term < self.seat.term:
            return "another medic leads now"
        if not self._sent.is_fresh(words.heard, now):
            return "it is too old"
        return "" if supervision.agrees(self.ward, order, now) else "the process is well"

    def _start(self, order: RestartOrder) -> None:
        members = {one.name: one for one in self.cluster.here}
        if order.name in members:
            self._in_background(f"start {order.name}", self._started(members[order.name], order))

    async def _started(self, member: Member, order: RestartOrder) -> None:
        try:
            incarnation = await asyncio.to_thread(self.launcher.start, member, order.dead)
        except (OSError, CaudalError) as error:
            _log.error("start failed", extra=fields(process=order.name, reason=str(error)))
            return
        if incarnation is not None:
            _log.warning("started", extra=fields(process=order.name, incarnation=incarnation))

    # Requests of other medics and of the command line

    async def _answer(self, words: Words) -> Words | None:
        now = time.monotonic()
        match words:
            case ElectionWord(word, sender, to, term):
                message = election.ElectionMessage(word, sender, to, term)
                self._step(election.receive(self.seat, message, now), now)
            case StartOrder():
                self._obey(words, now)
            case StatusRequest():
                return self.told(now)
            case StrikeOrder():
                return await self._strike(words)
        return None

    async def _strike(self, words: StrikeOrder) -> StrikeReply:
        refusal = await asyncio.to_thread(
            refusal_of_strike, self.cluster, self.launcher, words, self.me.name
        )
        about = fields(process=words.name, incarnation=words.incarnation, reason=refusal or None)
        _log.warning("strike refused" if refusal else f"strike: {words.fault}", extra=about)
        return StrikeReply(refusal)

    def told(self, now: float) -> StatusReply:
        """Return what this medic knows of all processes."""
        processes = [self._status(one, now) for one in self.cluster.members]
        strange, odd = self.complaints.unverified_at, self.complaints.unreadable_at
        return StatusReply(
            self.me.name,
            self.seat.role,
            self.seat.term,
            self._leader(),
            processes,
            self.complaints.unverified,
            sorted(self.complaints.differing),
            self.cluster.settings.chaos,
            self.complaints.settings,
            None if strange is None else now - strange,
            now - self._born,
            self.complaints.unreadable,
            None if odd is None else now - odd,
        )

    def _status(self, member: Member, now: float) -> ProcessStatus:
        patient = self.ward.patients[member.name]
        pulse = patient.pulse or Pulse(member.name, 0, 0)
        heard = now - patient.heard
        return ProcessStatus(
            name=member.name,
            kind=member.kind,
            host=member.host,
            state=self._state(member, now),
            incarnation=patient.newest,
            restarts=max(0, patient.known - patient.first),  # both of one record
            heard_seconds=heard if patient.pulse else None,
            progress=pulse.progress,
            memory=pulse.memory,
            pid=pulse.pid,
            detail=pulse.detail,
            address=f"{member.address}:{member.port}" if member.port else member.address,
            version=pulse.version,
            cpu=pulse.cpu,
        )

    def _state(self, member: Member, now: float) -> State:
        state = supervision.state_of(self.ward, member.name, now)
        is_down = supervision.is_dead(self.ward, member.name, now)
        return State.UNATTENDED if is_down and self._executor(member.host) is None else state

    def _in_background(self, what: str, work: Coroutine[None, None, None]) -> None:
        """Run one task of each name at a time; a second one with the same name is dropped."""
        if what in self._busy:
            work.close()
            return
        task = asyncio.create_task(work)
        self._busy[what] = task
        task.add_done_callback(lambda _: self._busy.pop(what, None))
