"""Facts about a job, read from the store: listings of one group or one level, never of all."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from caudal.decoding import convert
from caudal.errors import NotFoundError
from caudal.formats.keys import Keys, Task
from caudal.formats.outcomes import End
from caudal.jobs import objects
from caudal.jobs.intervals import IntervalSet
from caudal.store.port import Store, entries, folder_names

Answer = TypeVar("Answer")


class StoreFacts:
    """Facts and StoredFacts (jobs/readiness.py, jobs/reconcile.py) about one run of a job.

    Nothing is cached: every call reads what the store holds at that moment.
    """

    def __init__(self, store: Store, keys: Keys) -> None:
        self._store = store
        self._keys = keys

    @property
    def may_lose_maps(self) -> bool:
        """Return False: outputs of a job stay until it ends."""
        return False

    def ending(self, table: str) -> End | None:
        """Return the end of a table as the client sent it."""
        try:
            return objects.end(self._store, self._keys, table)
        except NotFoundError:
            return None

    def end(self, table: str) -> int | None:
        found = self.ending(table)
        return found.batches if found else None

    def mapped(self, table: str, group: int) -> IntervalSet:
        return self._numbers(self._keys.mapped_group(table, group))

    def merged(self, table: str) -> IntervalSet:
        return self._numbers(self._keys.merged(table))

    def folded(self, fold: str) -> IntervalSet:
        return self._numbers(self._keys.folds(fold))

    def finished(self) -> frozenset[str]:
        return frozenset(self._names(self._keys.results()))

    def groups(self, table: str) -> Iterator[int]:
        """Return the groups with at least one batch that has arrived, read page by page."""
        return map(int, folder_names(self._store, self._keys.batches(table)))

    def batches(self, table: str, group: int) -> IntervalSet:
        return self._numbers(self._keys.batches(table, group))

    def heard(self) -> tuple[str, ...]:
        """Return the marks that gateways left when the client sent a request."""
        return tuple(self._names(self._keys.seen()))

    def running(self) -> dict[Task, tuple[str, ...]]:
        """Return the marks of workers, by the task that they compute."""
        found: dict[Task, tuple[str, ...]] = {}
        for name in self._names(self._keys.running()):
            kind, task, number, mark = name.split("/")
            named = convert({"kind": kind, "name": task, "number": int(number)}, Task)
            found[named] = (*found.get(named, ()), mark)
        return found

    def _numbers(self, prefix: str) -> IntervalSet:
        return IntervalSet.of(int(name) for name in self._names(prefix))

    def _names(self, prefix: str) -> Iterator[str]:
        return (entry.key[len(prefix) :] for entry in entries(self._store, prefix))


class OneLook:
    """Facts with a cache for one look at a job: each question reads the store once.

    Use it where one decision needs the whole job. Never use it for `follow_up`, which must see
    objects that are created after the task's output.
    """

    def __init__(self, facts: StoreFacts) -> None:
        self._facts = facts
        self._answers: dict[tuple[str, ...], Any] = {}

    @property
    def may_lose_maps(self) -> bool:
        return self._facts.may_lose_maps

    def end(self, table: str) -> int | None:
        return self._once(("end", table), lambda: self._facts.end(table))

    def mapped(self, table: str, group: int) -> IntervalSet:
        return self._once(("mapped", table, str(group)), lambda: self._facts.mapped(table, group))

    def merged(self, table: str) -> IntervalSet:
        return self._once(("merged", table), lambda: self._facts.merged(table))

    def folded(self, fold: str) -> IntervalSet:
        return self._once(("folded", fold), lambda: self._facts.folded(fold))

    def finished(self) -> frozenset[str]:
        return self._once(("finished",), self._facts.finished)

    def groups(self, table: str) -> Iterator[int]:
        return self._facts.groups(table)

    def batches(self, table: str, group: int) -> IntervalSet:
        return self._once(("batches", table, str(group)), lambda: self._facts.batches(table, group))

    def _once(self, question: tuple[str, ...], ask: Callable[[], Answer]) -> Answer:
        if question not in self._answers:
            self._answers[question] = ask()
        answer: Answer = self._answers[question]
        return answer
