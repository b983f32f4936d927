"""Stores around a store: they record, die at an operation, fail, or wait for their turn."""

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from caudal.errors import NotFoundError, StoreError
from caudal.formats.digest import digest
from caudal.store import MemoryStore
from caudal.store.port import PAGE, Page, Store

Result = TypeVar("Result")


class DiedError(BaseException):
    """The process stops here. No code may catch it."""


class Moment(Enum):
    """When the process dies: with the operation not begun, or done and not yet answered."""

    BEFORE = "before"
    AFTER = "after"


@dataclass
class Around(Store):
    """Passes every operation on, through `operate`."""

    store: Store

    def operate(self, name: str, key: str, do: Callable[[], Result]) -> Result:
        return do()

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        self.operate("create", key, lambda: self.store.create(key, data, lasting=lasting))

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes:
        return self.operate("read", key, lambda: self.store.read(key, offset, length))

    def list(
        self, prefix: str, *, recursive: bool = True, after: str = "", limit: int = PAGE
    ) -> Page:
        return self.operate(
            "list",
            prefix,
            lambda: self.store.list(prefix, recursive=recursive, after=after, limit=limit),
        )

    def delete(self, key: str, *, lasting: bool = True) -> None:
        self.operate("delete", key, lambda: self.store.delete(key, lasting=lasting))

    def replace(self, key: str, data: bytes | Path, *, twin: str | None = None) -> str:
        return self.operate("replace", key, lambda: self.store.replace(key, data, twin=twin))


@dataclass
class Recording(Around):
    """Remembers every operation."""

    operations: list[tuple[str, str]] = field(default_factory=list)

    def operate(self, name: str, key: str, do: Callable[[], Result]) -> Result:
        self.operations.append((name, key))
        return do()


@dataclass
class Dying(Around):
    """Dies at one operation, counted from 0; a dead process does nothing any more."""

    at: int = 0
    moment: Moment = Moment.BEFORE
    die: Callable[[], Any] = field(default=lambda: None)  # a real process kills itself here
    done: int = 0
    dead: bool = False
    lock: Any = field(default_factory=threading.Lock)

    def operate(self, name: str, key: str, do: Callable[[], Result]) -> Result:
        with self.lock:
            if self.dead:
                raise DiedError
            here, self.done = self.done == self.at, self.done + 1
            if here and self.moment is Moment.BEFORE:
                self._stop()
            try:
                return do()
            finally:
                if here:  # also when the operation found nothing and says so
                    self._stop()

    def _stop(self) -> None:
        self.dead = True
        self.die()
        raise DiedError


@dataclass
class Powered(Around):
    """A memory store whose power may be cut: what was not to be lasting is then there or not.

    For every key with such an operation, all that it has been since the last one that lasts.
    """

    store: MemoryStore
    doubtful: dict[str, list[bytes | None]] = field(default_factory=dict)

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        self._note(key, lambda: self.store.create(key, data), lasting=lasting)

    def delete(self, key: str, *, lasting: bool = True) -> None:
        self._note(key, lambda: self.store.delete(key), lasting=lasting)

    def replace(self, key: str, data: bytes | Path, *, twin: str | None = None) -> str:
        return self._note(key, lambda: self.store.replace(key, data, twin=twin), lasting=True)

    def cut(self, choose: Callable[[Sequence[bytes | None]], bytes | None]) -> None:
        """The power goes and comes back."""
        for key, states in sorted(self.doubtful.items()):
            self.store.delete(key)
            state = choose(states)
            if state is not None:
                self.store.create(key, state)
        self.doubtful.clear()

    def _note(self, key: str, do: Callable[[], Result], *, lasting: bool) -> Result:
        before = self._state(key)
        result = do()
        if lasting:
            self.doubtful.pop(key, None)
        else:
            self.doubtful.setdefault(key, [before]).append(self._state(key))
        return result

    def _state(self, key: str) -> bytes | None:
        try:
            return self.store.read(key)
        except NotFoundError:
            return None


@dataclass
class ContentTagged(Around):
    """Tags are digests of the bytes, as on S3: equal bytes cannot be told apart."""

    def list(
        self, prefix: str, *, recursive: bool = True, after: str = "", limit: int = PAGE
    ) -> Page:
        page = self.store.list(prefix, recursive=recursive, after=after, limit=limit)
        tagged = [replace(one, tag=digest(self.store.read(one.key))) for one in page.entries]
        return replace(page, entries=tuple(tagged))

    def replace(self, key: str, data: bytes | Path, *, twin: str | None = None) -> str:
        self.store.replace(key, data, twin=twin)
        return digest(self.store.read(key))


@dataclass
class Failing(Around):
    """Raises an error (not a crash) instead of, or after, the operations that `when` chooses."""

    when: Callable[[str, str], bool] = field(default=lambda name, key: False)
    error: type[Exception] = OSError
    moment: Moment = Moment.BEFORE

    def operate(self, name: str, key: str, do: Callable[[], Result]) -> Result:
        chosen = self.when(name, key)
        if chosen and self.moment is Moment.BEFORE:
            raise self.error("injected")
        result = do()
        if chosen:
            raise self.error("injected")
        return result


@dataclass
class Interrupted(Around):
    """Frozen before one operation, while `meanwhile` happens; `watch` looks after each one.

    With `dies`, the process wakes up, does that one operation, and dies.
    """

    at: int = 0
    meanwhile: Callable[[], Any] = field(default=lambda: None)
    watch: Callable[[], Any] = field(default=lambda: None)
    dies: bool = False
    done: int = 0

    def operate(self, name: str, key: str, do: Callable[[], Result]) -> Result:
        here, self.done = self.done == self.at, self.done + 1
        if here:
            self.meanwhile()
        try:
            return do()
        finally:
            self.watch()
            if here and self.dies:
                raise DiedError


def copy_of(store: MemoryStore) -> MemoryStore:
    """Another store with the same objects and tags."""
    fresh = MemoryStore()
    fresh._objects = dict(store._objects)
    fresh._ordered = list(store._ordered)
    fresh._writes = store._writes
    return fresh


class Turns:
    """Lets actors (threads) do one store operation at a time, in an order that a seed decides."""

    def __init__(self, choose: Callable[[Sequence[str]], str]) -> None:
        self._choose = choose
        self._condition = threading.Condition()
        self._waiting: set[str] = set()
        self._alive: set[str] = set()
        self._granted: str | None = None
        self.order: list[str] = []

    @classmethod
    def seeded(cls, seed: int) -> "Turns":
        dice = random.Random(seed)
        return cls(lambda names: dice.choice(sorted(names)))

    def run(self, actors: dict[str, Callable[[], object]]) -> dict[str, BaseException]:
        """Run all actors to their end; gives what each raised."""
        raised: dict[str, BaseException] = {}
        self._alive = set(actors)
        threads = [
            threading.Thread(target=self._act, args=(name, act, raised), daemon=True)
            for name, act in actors.items()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
            assert not thread.is_alive(), "an actor hangs"
        return raised

    def wait(self, name: str) -> None:
        """Called by an actor before each of its operations."""
        with self._condition:
            self._waiting.add(name)
            self._grant()
            self._condition.wait_for(lambda: self._granted == name, 120)
            self._granted = None
            self._waiting.discard(name)

    def _act(self, name: str, act: Callable[[], object], raised: dict[str, BaseException]) -> None:
        try:
            self.wait(name)
            act()
        except BaseException as error:
            raised[name] = error
        finally:
            with self._condition:
                self._alive.discard(name)
                self._grant()

    def _grant(self) -> None:
        """When everyone alive waits, the next one may go."""
        if self._granted is None and self._alive and self._waiting >= self._alive:
            self._granted = self._choose(sorted(self._waiting & self._alive))
            self.order.append(self._granted)
            self._condition.notify_all()


@dataclass
class Gated(Around):
    """Waits for its actor's turn before each operation."""

    turns: Turns = field(default_factory=lambda: Turns.seeded(0))
    name: str = ""

    def operate(self, name: str, key: str, do: Callable[[], Result]) -> Result:
        self.turns.wait(self.name)
        return do()


@dataclass
class Unreliable(Gated):
    """As `Gated`, on a bad day: the process may die at an operation, done or not, and answers may
    be lost: of what was never done, of what was done, of what is done `later`."""

    dice: random.Random = field(default_factory=random.Random)
    dying: float = 0.0
    losing: float = 0.0
    later: list[Callable[[], Any]] = field(default_factory=list)
    dead: bool = False

    def operate(self, name: str, key: str, do: Callable[[], Result]) -> Result:
        if self.dead:
            raise DiedError
        self.turns.wait(self.name)
        if self.dice.random() < self.dying:
            self.dead = True
            if self.dice.random() < 0.5:
                do()
            raise DiedError
        if name in ("create", "replace", "delete") and self.dice.random() < self.losing:
            match self.dice.choice(["never done", "done", "done later"]):
                case "done":
                    do()
                case "done later":
                    self.later.append(do)
            raise StoreError("the answer was lost")
        return do()
