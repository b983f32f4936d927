"""Whose account of a cluster is shown: the leader's, whoever is frozen, gone or behind."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.harness.cluster_folder import laid_out

from caudal.cluster.folder import Cluster
from caudal.cluster.roster import medics
from caudal.cluster.upkeep import look
from caudal.formats.medic_status import StatusReply
from caudal.medic.talk import StatusRequest, Words, serve
from caudal.medic.visitor import best
from caudal.process.wire import Seal, read_secret

FROZEN, GONE = "frozen", "gone"


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return laid_out(tmp_path, medics=3)


def says(medic: str, leader: str, term: int) -> StatusReply:
    return StatusReply(medic, "leader" if medic == leader else "follower", term, leader, [])


def seen(cluster: Cluster, *fates: StatusReply | str) -> StatusReply | None:
    """What is seen of medics that tell this, are frozen, or are gone."""

    async def story() -> StatusReply | None:
        async with AsyncExitStack() as held:
            for member, fate in zip(medics(cluster.members), fates, strict=True):
                if fate != GONE:
                    server = await serve(member.address, member.port, seal, answer(fate))
                    await held.enter_async_context(server)
            return await asyncio.to_thread(look, cluster)

    seal = Seal(read_secret(cluster.secret))
    return asyncio.run(story())


def answer(fate: StatusReply | str) -> Callable[[Words], Awaitable[Words | None]]:
    async def told(words: Words) -> Words | None:
        assert isinstance(words, StatusRequest)
        return fate if isinstance(fate, StatusReply) else None

    return told


def test_the_leaders_account_whatever_the_others_say_or_do_not(cluster: Cluster) -> None:
    leader = says("medic-2", "medic-2", 7)
    ahead = says("medic-1", "medic-3", 9)
    for others in ((FROZEN, GONE), (ahead, FROZEN), (GONE, ahead), (FROZEN, FROZEN)):
        assert seen(cluster, others[0], leader, others[1]) == leader


def test_without_a_leader_the_newest_account(cluster: Cluster) -> None:
    older, newer = says("medic-1", "medic-3", 3), says("medic-2", "medic-3", 4)
    assert seen(cluster, older, newer, FROZEN) == newer
    assert seen(cluster, newer, older, GONE) == newer


def test_a_leader_that_has_just_started_is_not_believed_yet() -> None:
    """It has heard nobody: every process would seem to start."""
    fresh = replace(says("medic-3", "medic-3", 8), awake=0.4)
    known = replace(says("medic-2", "medic-3", 8), awake=90.0)
    behind = replace(says("medic-1", "medic-3", 7), awake=91.0)
    assert best([fresh, behind, known]) == known
    assert best([fresh]) == fresh
    begun = [fresh, replace(known, awake=0.5)]
    assert best(begun) == fresh, "the whole cluster has just started"
    grown = replace(fresh, awake=2.0)
    assert best([behind, known, grown]) == grown


def test_medics_of_an_earlier_version_do_not_say_for_how_long_they_listen() -> None:
    fresh = replace(says("medic-3", "medic-3", 8), awake=0.4)
    earlier, leader = says("medic-2", "medic-3", 8), says("medic-3", "medic-3", 8)
    assert best([fresh, earlier]) == earlier
    assert best([earlier, leader]) == leader


def test_nobody_answers(cluster: Cluster) -> None:
    assert seen(cluster, FROZEN, GONE, GONE) is None


def test_a_cluster_that_never_ran_has_no_secret_and_nobody_answers(cluster: Cluster) -> None:
    cluster.secret.unlink()
    assert look(cluster) is None
