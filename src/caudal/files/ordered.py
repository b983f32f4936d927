"""Parallel work with outcomes in the order of the items."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def in_order(
    pool: ThreadPoolExecutor,
    work: Callable[[Item], Outcome],
    items: Iterable[Item],
    *,
    ahead: int,
) -> Generator[Outcome]:
    """Yield outcomes in the order of the items; at most `ahead` items are queued or running."""
    flying: deque[Future[Outcome]] = deque()
    try:
        for item in items:
            flying.append(pool.submit(work, item))
            if len(flying) > ahead:
                yield flying.popleft().result()
        while flying:
            yield flying.popleft().result()
    except Exception:  # wait for running calls before anything else starts, but not after Ctrl-C
        wait([future for future in flying if not future.cancel()])
        raise
    finally:
        for future in flying:
            future.cancel()


def one_ahead(items: Iterator[Item]) -> Generator[Item]:
    """Yield the items, each made in another thread while the one before is in use. Close it: then
    it waits for the item that is being made."""
    with ThreadPoolExecutor(1, "ahead") as pool:
        coming = pool.submit(_next, items)
        while made := coming.result():
            coming = pool.submit(_next, items)
            yield made[0]


def _next(items: Iterator[Item]) -> tuple[Item] | None:
    return next(((item,) for item in items), None)
