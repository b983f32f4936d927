"""Open pages, as one process: `python -m bench.cluster.page_clients URL COUNT`.

It is started before the clock, says that it is ready, and reads the id of the job from its standard
input: loading Python and its packages is no cost of a page. Each page asks what a browser's page
asks (web/src/live.tsx), as often, and reads all of it: the events of the job, its plan once, its
tasks, the samples of processes, and an answer so far.
"""

import asyncio
import itertools
import sys
from collections.abc import Awaitable, Callable

import httpx

_TASKS, _HISTORY, _SO_FAR = 2.5, 10.0, 3.0  # seconds between two requests
_QUERIES = ("q2", "q3")


async def main(url: str, count: int) -> None:
    async with httpx.AsyncClient(base_url=url, timeout=60.0) as client:
        await client.get("/healthz")
        print("ready", flush=True)
        job = sys.stdin.readline().strip()
        await asyncio.gather(*(_page(client, job, number) for number in range(count)))


async def _page(client: httpx.AsyncClient, job: str, number: int) -> None:
    query, after, known = _QUERIES[number % len(_QUERIES)], "", 0

    async def tasks() -> None:
        nonlocal after
        page = (await client.get(f"/jobs/{job}/tasks", params={"after": after})).json()
        after = page.get("last", after)

    async def so_far() -> None:
        nonlocal known
        path = f"/jobs/{job}/results/{query}/so-far"
        found = (await client.get(path, params={"after": str(known)})).json()
        known = max(known, sum(found.get("covered", {}).values()))

    async def history() -> None:
        await client.get("/cluster/history", params={"seconds": "3600"})

    await client.get(f"/jobs/{job}/plan")
    await asyncio.gather(
        _events(client, job),
        _every(_TASKS, tasks),
        _every(_HISTORY, history),
        _every(_SO_FAR, so_far),
    )


async def _events(client: httpx.AsyncClient, job: str) -> None:
    async with client.stream("GET", f"/jobs/{job}/events") as stream:
        async for _ in stream.aiter_lines():
            pass


async def _every(seconds: float, ask: Callable[[], Awaitable[None]]) -> None:
    for _ in itertools.count():
        await ask()
        await asyncio.sleep(seconds)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
