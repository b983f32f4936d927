"""Turns at planning: owners alternate, none has all of them, and who waits in vain is told so."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.harness.gateway_place import Place, code_of, create, job_content

from caudal.formats.job import Request, Text
from caudal.gateway.refusals import Refusal
from caudal.gateway.room import Turns
from caudal.model import Query

FAR = 600.0


def play(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 60))


async def holder(turns: Turns, owner: str, told: list[str], leave: asyncio.Event) -> None:
    async with turns.one(owner):
        told.append(owner)
        await leave.wait()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_an_owner_with_many_requests_leaves_a_turn_to_others() -> None:
    async def story() -> None:
        turns, told, leave = Turns(2, 32, 8, FAR), list[str](), asyncio.Event()
        many = [asyncio.create_task(holder(turns, "greedy", told, leave)) for _ in range(5)]
        await settle()
        assert told == ["greedy"]
        one = asyncio.create_task(holder(turns, "modest", told, leave))
        await settle()
        assert told == ["greedy", "modest"]
        leave.set()
        await asyncio.gather(*many, one)
        assert told.count("greedy") == 5

    play(story)


def test_owners_alternate() -> None:
    async def story() -> None:
        turns, told, leave = Turns(1, 32, 8, FAR), list[str](), asyncio.Event()
        owners = ["a", "a", "a", "b", "b", "c"]
        tasks = [asyncio.create_task(holder(turns, owner, told, leave)) for owner in owners]
        await settle()
        leave.set()
        await asyncio.gather(*tasks)
        assert told == ["a", "b", "c", "a", "b", "a"]

    play(story)


@pytest.mark.parametrize("owners", [["a"] * 4, ["a", "b", "c", "d", "e", "f"]])
def test_too_many_that_wait_are_refused(owners: list[str]) -> None:
    async def story() -> None:
        turns, told, leave = Turns(1, 4, 2, FAR), list[str](), asyncio.Event()
        tasks = [asyncio.create_task(holder(turns, owner, told, leave)) for owner in owners]
        await settle()
        leave.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        refused = [one for one in found if isinstance(one, Refusal)]
        assert [(one.status, one.code) for one in refused] == [(429, "busy")]
        assert refused[0].headers["retry-after"]

    play(story)


def test_who_leaves_or_waits_too_long_takes_no_turn() -> None:
    async def story() -> None:
        turns, told, leave = Turns(1, 8, 8, 0.01), list[str](), asyncio.Event()
        first = asyncio.create_task(holder(turns, "a", told, leave))
        await settle()
        with pytest.raises(Refusal, match="try again"):
            await holder(turns, "b", told, leave)
        gone = asyncio.create_task(holder(turns, "c", told, leave))
        await settle()
        gone.cancel()
        leave.set()
        await asyncio.gather(first, gone, return_exceptions=True)
        await holder(turns, "d", told, leave)
        assert told == ["a", "d"]
        assert not turns._waiting
        assert not turns._running

    play(story)


def test_a_job_that_cannot_be_planned_is_refused_with_the_reason(place: Place) -> None:
    query = Query("q", "", "SELECT * FROM read_text('/etc/passwd')", "q.sql")
    request = Request(Text("bad", "", (), (query,)))
    client = place.client()
    answer = client.put("/jobs/bad", content=job_content(request))
    assert code_of(answer) == (422, "cannot_plan")
    assert "read_text cannot be used here" in answer.json()["error"]["message"]
    create(client)
