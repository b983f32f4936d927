"""A medic on real sockets: whom it hears, whom it does not, and what it answers."""

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator, Container, Iterator, Sequence
from dataclasses import replace

import msgspec
import pytest
from tests.harness.cluster_folder import AWAY
from tests.unit.medic.conftest import NobodyToStart, beat_until_heard, heard, run, until

from caudal.cluster.compare_settings import PASSWORD, digests_of
from caudal.cluster.doctor import _medics
from caudal.cluster.folder import Cluster
from caudal.cluster.notices import notices
from caudal.cluster.roster import digest_of
from caudal.cluster.settings import FILE
from caudal.cluster.start_note import write_note
from caudal.cluster.upkeep import nobody_answers, start_all
from caudal.errors import UsageError
from caudal.medic import service, talk
from caudal.medic.service import Medic
from caudal.medic.supervision import RestartOrder
from caudal.medic.talk import MedicLink, ask, hangs_up
from caudal.process.heart import Heart, Heartbeat, HeartSession
from caudal.process.pulse import HostRecord, Pulse
from caudal.process.records import write_record
from caudal.process.ticks import Tick
from caudal.process.wire import Seal, read_secret
from caudal.version import __version__


async def until_it_listens(speaker: socket.socket, where: tuple[str, int], packet: bytes) -> None:
    """Packets that nobody receives are lost: say it until there is an answer, and no other."""
    loop = asyncio.get_running_loop()
    while True:
        speaker.sendto(packet, where)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(loop.sock_recv(speaker, 10_000), 0.5)
            return


async def until_it_answers(medic: Medic) -> None:
    while await ask(medic.me.address, medic.me.port, medic.heart.seal) is None:
        await asyncio.sleep(0.05)


def test_a_heart_is_heard_once_it_knows_the_session(heart: Heart, medic: Medic) -> None:
    heart.progress = lambda: 17

    async def story() -> None:
        pulse = await beat_until_heard(heart, medic)
        assert (pulse.incarnation, pulse.progress) == (4, 17)
        assert pulse.sequence > 1, "the first beat cannot have named the session"
        told = await ask(medic.me.address, medic.me.port, medic.heart.seal)
        assert told is not None
        assert told.leader == "medic-1"
        assert told.awake is not None
        assert told.awake > 0
        assert {one.name: one.state for one in told.processes}["worker-1"] == "healthy"

    run(medic, story)


def test_forged_replayed_and_garbled_packets_are_not_heard(cluster: Cluster, medic: Medic) -> None:
    right, wrong = Seal(read_secret(cluster.secret)), Seal(b"another secret, just as long")
    where = (medic.me.address, medic.me.port)

    def packet(seal: Seal, session: str, sequence: int) -> bytes:
        beat = Heartbeat(session, Pulse("worker-1", 1, sequence))
        return seal.close(msgspec.json.encode(beat))

    async def story() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as speaker:
            speaker.setblocking(False)
            await until_it_listens(speaker, where, packet(right, "", 1))
            loop = asyncio.get_running_loop()
            speaker.sendto(packet(wrong, medic.session, 1), where)
            speaker.sendto(b"", where)
            speaker.sendto(b"x" * 9_000, where)
            speaker.sendto(right.close(b"{"), where)
            recorded = packet(right, "the session of an earlier medic", 99)
            speaker.sendto(recorded, where)
            answer = await asyncio.wait_for(loop.sock_recv(speaker, 10_000), 60)
            payload = right.open(answer)
            assert payload is not None
            assert msgspec.json.decode(payload, type=HeartSession).session == medic.session
            assert heard(medic) is None
            speaker.sendto(packet(right, medic.session, 5), where)
            await until(lambda: heard(medic) is not None)
            speaker.sendto(packet(right, medic.session, 5), where)
            speaker.sendto(packet(right, medic.session, 4), where)
            speaker.sendto(packet(right, medic.session, 6), where)
            await until(lambda: (heard(medic) or Pulse("", 0, 0)).sequence == 6)

    run(medic, story)


def test_one_that_was_heard_just_now_is_not_looked_at_closely(medic: Medic) -> None:
    """What the kernel says of a process is asked only once it is silent."""
    looks: list[set[str]] = []

    def records(names: Sequence[str], closely: Container[str]) -> list[HostRecord]:
        looks.append({name for name in names if name in closely})
        return []

    medic.launcher.records = records  # type: ignore[method-assign]
    medic._records()
    medic._hear(Pulse("worker-1", 1, 1))
    medic._records()
    assert looks == [{"medic-1", "worker-1"}, {"medic-1"}]


async def heartbeats(medic: Medic) -> AsyncIterator[Heartbeat]:
    """Yield what the medic tells other ones."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear:
        ear.setblocking(False)
        ear.bind(("127.0.0.1", 0))
        medic.heart.file = msgspec.structs.replace(medic.heart.file, medics=[ear.getsockname()])
        while True:
            packet = await asyncio.wait_for(loop.sock_recv(ear, 10_000), 60)
            payload = medic.heart.seal.open(packet)
            assert payload is not None
            yield msgspec.json.decode(payload, type=Heartbeat)


def test_a_medic_tells_since_when_a_process_is_stopped(medic: Medic) -> None:
    """In every heartbeat: another medic may lead by now, and does not count anew."""
    stopped = HostRecord("worker-1", 1, 9.0, gone=False, stopped=True)
    medic.launcher.records = lambda *_: [stopped]  # type: ignore[method-assign]
    told: list[float] = []

    async def story() -> None:
        async for beat in heartbeats(medic):
            told.extend(one.stopped_for for one in beat.records)
            if told[-1] > 0.0:
                return

    run(medic, story)
    assert sorted(told) == told


def test_restarts_do_not_jump_before_the_record_of_a_new_start(medic: Medic) -> None:
    """A host was taken down and up again: the process is heard before its record."""

    def restarts() -> int:
        return next(one.restarts for one in medic.told(0.0).processes if one.name == "worker-1")

    def record(incarnation: int, first: int) -> None:
        now = time.monotonic()
        medic._see([HostRecord("worker-1", incarnation, 0.0, gone=False, first=first)], now)

    record(7, 5)
    assert restarts() == 2
    medic._hear(Pulse("worker-1", 8, 1))
    assert restarts() == 2
    record(8, 8)
    assert restarts() == 0


def test_a_tick_that_breaks_breaks_the_medic(medic: Medic) -> None:
    """So that it is started again, rather than half alive."""

    def broken() -> None:
        raise ZeroDivisionError

    medic._tick = broken  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError):
        asyncio.run(medic.run(asyncio.Event()))


def test_a_medic_whose_udp_port_is_taken_says_so(medic: Medic) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as other:
        other.bind((medic.me.address, medic.me.port))
        with pytest.raises(UsageError, match=f"cannot listen on port {medic.me.port}"):
            asyncio.run(medic.run(asyncio.Event()))


def test_one_that_is_not_ready_is_starting_and_its_version_is_told(
    cluster: Cluster, medic: Medic
) -> None:
    worker = next(one for one in cluster.here if one.name == "worker-1")
    heart = Heart(cluster.write_heart(worker, 1))

    def status() -> tuple[str, str]:
        medic._hear(heart.beat(Tick(1, 0.0)))
        told = medic.told(time.monotonic())
        found = next(one for one in told.processes if one.name == "worker-1")
        return found.state, found.version

    with contextlib.closing(heart):
        heart.ready = False
        assert status() == ("starting", __version__)
        heart.ready = True
        assert status() == ("healthy", __version__)


def test_who_does_not_know_the_secret_gets_no_answer(medic: Medic) -> None:
    async def story() -> None:
        await until_it_answers(medic)
        stranger = Seal(b"another secret, just as long")
        assert await ask(medic.me.address, medic.me.port, stranger) is None
        assert await hangs_up(medic.me.address, medic.me.port, stranger)
        assert not await hangs_up(medic.me.address, medic.me.port, medic.heart.seal)

    run(medic, story)


def test_a_secret_that_is_not_that_of_the_medics_is_named(cluster: Cluster, medic: Medic) -> None:
    cluster.secret.write_text("another secret, just as long")

    async def story() -> None:
        await until_it_answers(medic)
        words = r"medics run that have another secret than .*restore .*caudal down"
        (finding,) = await asyncio.to_thread(lambda: list(_medics(cluster)))
        assert finding.what == "secret"
        assert str(await asyncio.to_thread(nobody_answers, cluster)).startswith(finding.found)
        with pytest.raises(UsageError, match=words):
            await asyncio.to_thread(start_all, cluster)

    run(medic, story)


@contextlib.asynccontextmanager
async def stranger(medic: Medic, words: bytes = b"") -> AsyncIterator[asyncio.StreamReader]:
    """A connection that never shows that it knows the secret."""
    reader, writer = await asyncio.open_connection(medic.me.address, medic.me.port)
    try:
        await reader.readexactly(16)
        writer.write(words)
        yield reader
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def _hung_up(reader: asyncio.StreamReader) -> bool:
    return reader.at_eof() or reader.exception() is not None


def test_strangers_keep_nobody_out_and_take_little(
    medic: Medic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three hundred who connect and say nothing, or announce much: all but a few are hung up on."""
    monkeypatch.setattr(talk, "STRANGER_SECONDS", 3_600.0)

    async def story() -> None:
        await until(lambda: medic.ward.patients["medic-1"].pulse is not None)
        async with contextlib.AsyncExitStack() as held:
            words = [b""] * 150 + [b"\x00\x0f\xff\xff" + b"x" * 60_000] * 150
            them = [await held.enter_async_context(stranger(medic, one)) for one in words]
            assert await ask(medic.me.address, medic.me.port, medic.heart.seal, 60.0) is not None
            await until(lambda: sum(not _hung_up(one) for one in them) <= 32)
            await until(lambda: all(_hung_up(one) for one in them[150:]))

    run(medic, story)


def test_a_stranger_who_says_nothing_is_hung_up_on(
    medic: Medic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talk, "STRANGER_SECONDS", 0.01)

    async def story() -> None:
        await until(lambda: medic.ward.patients["medic-1"].pulse is not None)
        with contextlib.suppress(ConnectionError):
            async with stranger(medic) as one:
                assert await one.read() == b""

    run(medic, story)


def test_known_visitors_are_bounded_too(medic: Medic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk, "_VISITORS_MOST", 0)

    async def story() -> None:
        await until(lambda: medic.ward.patients["medic-1"].pulse is not None)
        assert await ask(medic.me.address, medic.me.port, medic.heart.seal, 60.0) is None

    run(medic, story)


def test_a_leader_starts_what_it_never_heard_after_one_full_timeout(medic: Medic) -> None:
    launcher = medic.launcher
    assert isinstance(launcher, NobodyToStart)

    async def story() -> None:
        await until(lambda: bool(launcher.started))
        assert launcher.started[0] == ("worker-1", 0)

    run(medic, story)


def test_a_medic_ends_quietly_although_it_has_a_visitor(
    medic: Medic, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as visitor:
        visitor.setblocking(False)

        async def story() -> None:
            loop = asyncio.get_running_loop()
            await until(lambda: medic.ward.patients["medic-1"].pulse is not None)
            await loop.sock_connect(visitor, (medic.me.address, medic.me.port))
            assert await loop.sock_recv(visitor, 16)

        run(medic, story)
    assert [one.getMessage() for one in caplog.records if one.levelname == "ERROR"] == []


def test_another_store_in_the_file_is_not_followed_and_said_once(
    medic: Medic, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_SLOW_SECONDS", 0.01)
    cluster, path = medic.cluster, medic.cluster.folder / FILE
    write_note(cluster.run_folder, cluster.settings)
    write_record(cluster.run_folder, "medic-1", 1, os.getpid())
    text = path.read_text()

    async def story() -> None:
        path.write_text(text.replace('"store"', '"other"'))
        await until(lambda: 'store = "other"' in caplog.text)
        path.write_text(text.replace('"store"', '"other"').replace("workers = 1", "workers = 2"))
        await until(lambda: medic.cluster.settings.hosts["local"].workers == 2)
        assert medic.cluster.store == cluster.store
        assert caplog.text.count('store = "other"') == 1

    run(medic, story)


def test_medics_of_other_hosts_hear_a_broker_from_the_medic_of_its_host(medic: Medic) -> None:
    """A broker sends no heartbeats, so the medic that greets it passes its pulse on."""
    beat = Heartbeat(medic.session, Pulse("medic-9", 1, 1), [], [Pulse("worker-1", 3, 8)])
    medic.hear(medic.heart.seal.close(msgspec.json.encode(beat)), ("127.0.0.1", 1))
    assert heard(medic) == Pulse("worker-1", 3, 8)


class WithBroker(NobodyToStart):
    """A launcher that has started a broker three times."""

    def record(self, name: str) -> HostRecord | None:
        return HostRecord(name, 3, 1.0, gone=False) if name == "broker" else None


def test_a_medic_sends_each_greeting_of_its_broker_once(cluster: Cluster) -> None:
    """In the heartbeat after it: here of a broker that answers twice and then falls silent."""
    path = cluster.folder / FILE
    text = path.read_text().replace(AWAY, "private").replace("broker = false", "broker = true")
    path.write_text(text)
    private = Cluster.open(cluster.folder)
    broker, me = private.here[0], private.here[-1]
    asked, beats = 0, list[Heartbeat]()

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await reader.readexactly(8)
        writer.write(b"\x01" if asked <= 2 else b"")
        writer.close()

    async def story() -> None:
        server = await asyncio.start_server(greet, broker.address, broker.port)
        await until(lambda: asked == 4)  # the heartbeat before the third told of the second
        server.close()

    with (
        contextlib.closing(Heart(private.write_heart(me, 1))) as heart,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear,
    ):
        ear.bind(("127.0.0.1", 0))
        heart.file = msgspec.structs.replace(heart.file, medics=[ear.getsockname()])
        run(Medic(me, private, WithBroker(), heart), story)
        ear.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while payload := heart.seal.open(ear.recv(10_000)):
                beats.append(msgspec.json.decode(payload, type=Heartbeat))
    assert [one.greeted for one in beats if one.greeted] == [
        [Pulse("broker", 3, 1)],
        [Pulse("broker", 3, 2)],
    ]


def test_messages_of_another_secret_are_counted_and_logged_now_and_then(
    medic: Medic, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = Seal(b"another secret of a host")
    for _ in range(100):
        medic.hear(stranger.close(b"{}"), ("127.0.0.9", 1))
    assert medic.complaints.unverified == 100
    assert caplog.text.count("messages do not verify") == 7
    now = time.monotonic()
    assert [len(notices(medic.cluster, medic.told(now + later))) for later in (0, 90)] == [1, 0]


def test_messages_over_tcp_are_counted_too_if_they_do_not_verify(
    medic: Medic, caplog: pytest.LogCaptureFixture
) -> None:
    """Those of medics with another secret, and of what is no medic. Who says nothing is none."""
    where = medic.me.address, medic.me.port
    wrong = Seal(b"another secret of a host")

    async def story() -> None:
        await until_it_answers(medic)
        for _ in range(3):
            assert await ask(*where, wrong) is None
        await until(lambda: medic.complaints.unverified == 3)
        with contextlib.suppress(ConnectionError):
            async with stranger(medic, b"GET / HTTP/1.1\r\n\r\n"):
                await until(lambda: medic.complaints.unverified == 4)
        with contextlib.suppress(ConnectionError):
            async with stranger(medic):
                pass
        assert await ask(*where, medic.heart.seal) is not None

    run(medic, story)
    assert medic.complaints.unverified == 4
    logged = [one for one in caplog.records if "messages do not verify" in one.getMessage()]
    assert len(logged) == 3, "the first, second and fourth"
    (notice,) = notices(medic.cluster, medic.told(time.monotonic()))
    assert notice.found == "medic-1 received 4 messages that another secret signed"


def test_heartbeats_that_cannot_be_read_are_counted_and_logged_now_and_then(
    medic: Medic, caplog: pytest.LogCaptureFixture
) -> None:
    """They are signed, so somebody of this cluster sent them: with another version."""
    for _ in range(100):
        medic.hear(medic.heart.seal.close(b'{"type": "beat of the year 2040"}'), ("127.0.0.9", 1))
    assert caplog.text.count("heartbeats cannot be read") == 7
    now = time.monotonic()
    (notice,) = notices(medic.cluster, medic.told(now))
    assert notice.found == "medic-1 received 100 heartbeats that it cannot read"
    assert notices(medic.cluster, medic.told(now + 90)) == []


def test_a_host_with_other_members_in_its_file_is_noted_until_it_has_the_same(
    medic: Medic, caplog: pytest.LogCaptureFixture
) -> None:
    medic.me = replace(medic.me, host="another")
    for number, roster in enumerate(("other", "other", digest_of(medic.cluster.members))):
        beat = Heartbeat(medic.session, Pulse("worker-1", 1, number + 1), roster=roster)
        medic.hear(medic.heart.seal.close(msgspec.json.encode(beat)), ("127.0.0.1", 1))
        assert medic.complaints.differing == ({"local"} if roster == "other" else set())
    assert caplog.text.count("cluster.toml differs between hosts") == 1


def test_a_host_with_another_store_or_broker_is_noted_until_it_has_the_same(
    medic: Medic, caplog: pytest.LogCaptureFixture
) -> None:
    medic.me = replace(medic.me, host="another")
    seal, settings = medic.heart.seal, medic.cluster.settings
    other = msgspec.structs.replace(settings, store="other", broker="amqp://u:secret@b/")
    for number, theirs in enumerate((other, other, settings)):
        digests = digests_of(theirs, seal) | {"a_key_of_the_next_version": "00"}
        beat = Heartbeat(
            medic.session,
            Pulse("worker-1", 1, number + 1),
            roster=digest_of(medic.cluster.members),
            settings=digests,
        )
        medic.hear(seal.close(msgspec.json.encode(beat)), ("127.0.0.1", 1))
        expected = {} if theirs is settings else {"local": ["store", "broker"]}
        assert medic.told(0.0).settings == expected
    assert caplog.text.count("settings differ between hosts") == 1
    assert "secret" not in str(digests_of(other, seal))


@pytest.fixture
def private(cluster: Cluster) -> Iterator[Medic]:
    """A medic of host `b`, in a cluster whose private broker runs on host `local`."""
    path = cluster.folder / FILE
    text = path.read_text().replace(AWAY, "private").replace("broker = false", "broker = true")
    path.write_text(f'{text}[hosts.b]\naddress = "127.0.0.2"\nmedics = 1\n')
    (cluster.folder / PASSWORD).write_text("the password of this host")
    found = Cluster.open(cluster.folder, "b")
    found.run_folder.mkdir()
    me = next(one for one in found.here if one.kind == "medic")
    with contextlib.closing(Heart(found.write_heart(me, 1))) as heart:
        yield Medic(me, found, NobodyToStart(), heart)


def test_a_host_without_a_medic_is_logged_once_until_it_has_one_again(
    private: Medic, caplog: pytest.LogCaptureFixture
) -> None:
    """A leader finds the dead process at every tick."""
    caplog.set_level("ERROR")
    order, nobody = RestartOrder("worker-1.local", 1), private.ward
    other = next(one for one in private.cluster.members if one.name == "medic-1.local")
    private._links[other.number] = MedicLink("127.0.0.1", 1, private.heart.seal)
    for _ in range(3):
        private._order(order)
    private._order(RestartOrder("broker", 1))
    (first, second) = caplog.messages
    assert first == second == "cannot restart: no medic runs on its host; run `caudal up` there"
    private._hear(Pulse(other.name, 1, 1))
    private._order(order)
    assert len(caplog.messages) == 2
    private.ward = nobody
    for _ in range(3):
        private._order(order)
    assert len(caplog.messages) == 3


def test_a_host_with_another_password_of_the_broker_is_noted_until_it_has_the_same(
    private: Medic, caplog: pytest.LogCaptureFixture
) -> None:
    seal, settings = private.heart.seal, private.cluster.settings
    for number, password in enumerate(("that of local", "that of local", "", "the one of both")):
        beat = Heartbeat(
            private.session,
            Pulse("medic-1.local", 1, number + 1),
            roster=digest_of(private.cluster.members),
            settings=digests_of(settings, seal, password),  # without one: an earlier version
        )
        if password == "the one of both":
            (private.cluster.folder / PASSWORD).write_text(password)
            private._reread()
        private.hear(seal.close(msgspec.json.encode(beat)), ("127.0.0.1", 1))
        noted = notices(private.cluster, private.told(0.0))
        assert [str(one) for one in noted] == (
            [
                "local has another broker.password than the host of medic-1.b: compare "
                "broker.password on all hosts: the right one is that of the broker's first start"
            ]
            if password == "that of local"
            else []
        )
    assert caplog.text.count("settings differ between hosts") == 1
    digests = [
        digests_of(settings, one, "that of local")[PASSWORD]
        for one in (seal, Seal(b"another secret of a host"))
    ]
    assert digests[0] != digests[1], "who does not know the secret cannot try passwords"


def test_a_medic_of_the_same_host_that_has_not_read_the_file_again_is_not_noted(
    medic: Medic,
) -> None:
    beat = Heartbeat(medic.session, Pulse("worker-1", 1, 1), roster="other", settings={})
    medic.hear(medic.heart.seal.close(msgspec.json.encode(beat)), ("127.0.0.1", 1))
    assert (medic.complaints.differing, medic.complaints.settings) == (set(), {})


def test_a_medic_tells_the_others_what_its_file_says(medic: Medic) -> None:
    told: list[Heartbeat] = []

    async def story() -> None:
        told.append(await anext(heartbeats(medic)))

    run(medic, story)
    settings = told[0].settings
    assert settings == digests_of(medic.cluster.settings, medic.heart.seal)
    assert set(settings) == {"broker"}  # all other keys are at their defaults
