"""Orders of a leader to a medic of another host: which are given, sent, executed and refused."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.medic.conftest import NobodyToStart, beat_until_heard, run, until

from caudal.cluster.folder import Cluster
from caudal.cluster.roster import medics
from caudal.cluster.settings import FILE
from caudal.medic import service, supervision, talk
from caudal.medic.service import Medic
from caudal.process.heart import Heart
from caudal.process.pulse import HostRecord, Pulse


def test_a_late_order_for_a_process_that_is_heard_is_refused(
    heart: Heart, medic: Medic, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        await beat_until_heard(heart, medic)
        link = talk.MedicLink(medic.me.address, medic.me.port, medic.heart.seal)
        keeping = asyncio.create_task(link.keep())
        link.say(talk.StartOrder("worker-1", 4, medic.seat.term))
        await until(lambda: "order refused" in caplog.text)
        keeping.cancel()

    run(medic, story)
    assert isinstance(medic.launcher, NobodyToStart)
    assert ("worker-1", 4) not in medic.launcher.started


def test_an_order_of_an_older_term_is_refused(medic: Medic) -> None:
    async def story() -> None:
        await until(lambda: medic.seat.leader == medic.me.number)
        medic.ward = supervision.see(
            medic.ward, HostRecord("worker-1", 7, 1.0, gone=True), time.monotonic()
        )
        await medic._answer(talk.StartOrder("worker-1", 7, medic.seat.term - 1))
        assert "start worker-1" not in medic._busy
        await medic._answer(talk.StartOrder("worker-1", 7, medic.seat.term))
        assert "start worker-1" in medic._busy

    run(medic, story)


def test_an_order_that_is_too_old_is_refused(
    medic: Medic, caplog: pytest.LogCaptureFixture
) -> None:
    """By the medic's own clock: the order names a heartbeat that the medic sent long ago."""

    async def story() -> None:
        await until(lambda: medic.seat.leader == medic.me.number)
        now, term = time.monotonic(), medic.seat.term
        medic._sent.note(Pulse("medic-1", 1, 900), now - 6)
        medic._sent.note(Pulse("medic-1", 1, 901), now - 1)
        gone = HostRecord("worker-1", 7, 1.0, gone=True)
        medic.ward = supervision.see(medic.ward, gone, now)
        for old in ((1, 900), (0, 901), (1, 899)):
            medic._obey(talk.StartOrder("worker-1", 7, term, old), now)
            assert "start worker-1" not in medic._busy
        assert caplog.text.count("order refused") == 3
        medic._obey(talk.StartOrder("worker-1", 7, term, (1, 901)), now)
        assert "start worker-1" in medic._busy

    run(medic, story)


def test_an_order_that_names_a_heartbeat_just_sent_is_executed(medic: Medic) -> None:
    """Named as a leader does: the one that was heard."""

    async def story() -> None:
        await until(lambda: medic.seat.leader == medic.me.number)
        await until(lambda: medic.ward.patients["medic-1"].pulse is not None)
        pulse = medic.ward.patients["medic-1"].pulse
        assert pulse is not None
        gone = HostRecord("worker-1", 7, 1.0, gone=True)
        medic.ward = supervision.see(medic.ward, gone, time.monotonic())
        named = pulse.incarnation, pulse.sequence
        medic._obey(talk.StartOrder("worker-1", 7, medic.seat.term, named), time.monotonic())
        assert "start worker-1" in medic._busy

    run(medic, story)


def test_a_medic_that_was_frozen_as_it_sent_a_heartbeat_counts_that_time(
    medic: Medic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A heartbeat is as old as the moment before it was sent."""
    now, send, sent = 1000.0, medic.heart.beat, list[Pulse]()
    monkeypatch.setattr(service, "time", SimpleNamespace(monotonic=lambda: now))

    def freezing(*words: Any, **more: Any) -> Pulse:
        nonlocal now
        sent.append(send(*words, **more))
        now = 1007.0
        return sent[-1]

    monkeypatch.setattr(medic.heart, "beat", freezing)

    async def story() -> None:
        beating = asyncio.create_task(medic._beats())
        await until(lambda: bool(sent))
        beating.cancel()

    asyncio.run(story())
    assert not medic._sent.is_fresh((sent[0].incarnation, sent[0].sequence), now)


def test_an_order_names_the_newest_heartbeat_of_its_receiver(cluster: Cluster) -> None:
    with (cluster.folder / FILE).open("a") as file:
        file.write('[hosts.b]\naddress = "127.0.0.2"\nmedics = 1\nworkers = 1\n')
    both = Cluster.open(cluster.folder, "local")
    me, other = medics(both.members)
    worker = next(one for one in both.members if one.host == "b" and one.kind == "worker")
    heart = Heart(both.write_heart(me, 1))
    medic = Medic(me, both, NobodyToStart(), heart)
    link = medic._links[other.number] = talk.MedicLink(other.address, other.port, heart.seal)
    medic._hear(Pulse(other.name, 2, 41))
    medic._order(supervision.RestartOrder(worker.name, 3))
    _, words = link._waiting.get_nowait()
    assert words == talk.StartOrder(worker.name, 3, medic.seat.term, (2, 41))
    heart.close()


def test_an_order_that_waited_for_its_connection_is_not_sent_any_more(medic: Medic) -> None:
    """A partition of seconds: what was ordered before it must not arrive after it."""
    now = 100.0

    async def story() -> None:
        nonlocal now
        heard: list[str] = []

        async def answer(words: talk.Words) -> None:
            assert isinstance(words, talk.StartOrder)
            heard.append(words.name)

        port = medic.me.port
        link = talk.MedicLink("127.0.0.1", port, medic.heart.seal, clock=lambda: now)
        for name in ("old-1", "old-2"):
            link.say(talk.StartOrder(name, 1, 1))
        now += 3.1
        link.say(talk.StartOrder("new", 1, 1))
        server = await talk.serve("127.0.0.1", port, medic.heart.seal, answer)
        keeping = asyncio.create_task(link.keep())
        await until(lambda: bool(heard))
        keeping.cancel()
        server.close()
        assert heard == ["new"]

    asyncio.run(story())
