"""Whose account of a cluster is shown: the leader's, whoever is frozen, gone or behind."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.harness.cluster_folder import laid_out

from caudal.cluster.folder import Cluster
from caudal.cluster.roster import medics
from caudal.cluster.upkeep import look
from caudal.formats.medic_status import StatusReply
from caudal.medic.talk import StatusRequest, Words, serve
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


def test_nobody_answers(cluster: Cluster) -> None:
    assert seen(cluster, FROZEN, GONE, GONE) is None


def test_a_cluster_that_never_ran_has_no_secret_and_nobody_answers(cluster: Cluster) -> None:
    cluster.secret.unlink()
    assert look(cluster) is None
