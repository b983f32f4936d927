"""Parallel work whose outcomes come in the order of its items."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
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
    """The outcomes in the order of the items, at most `ahead` of them waiting or under way."""
    flying: deque[Future[Outcome]] = deque()
    try:
        for item in items:
            flying.append(pool.submit(work, item))
            if len(flying) > ahead:
                yield flying.popleft().result()
        while flying:
            yield flying.popleft().result()
    except Exception:  # not Ctrl-C: what is under way ends before anything else begins
        wait([future for future in flying if not future.cancel()])
        raise
    finally:
        for future in flying:
            future.cancel()
