"""When to publish a job's missing tasks again, and when its client has left.

Rules
1. Tasks are published again when the same ones were missing for as long as patience asks. Patience
   doubles with every round that changed nothing and starts anew when anything did.
2. A client has left when nobody heard it for its time. "Heard" are marks that gateways leave in
   the store; what counts is that no new mark appeared while this watcher looked, by its own clock.
   So clocks that differ between machines expire nobody.
3. A task that somebody computes is not published again. Workers leave marks as well, which change
   as long as they live; what counts is again that a mark changed while this watcher looked.
4. A watcher that looked away for too long (it was stopped, or has just started) knows nothing
   about that time: it begins to watch anew, and observes one full timeout first.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from caudal.formats.keys import Lane, Message, Task

_SLOWER = 16  # times fewer messages of the slow lane make it full


@dataclass(frozen=True)
class Patience:
    """How long to wait, in seconds."""

    first: float
    most: float
    silent: float  # of the client


@dataclass(frozen=True)
class Watch:
    """What one watcher remembers of one job."""

    missing: tuple[Task, ...]
    missing_since: float
    patience: float
    heard: tuple[str, ...]
    heard_since: float
    looked: float


def observe(
    before: Watch | None,
    now: float,
    missing: tuple[Task, ...],
    heard: tuple[str, ...],
    patience: Patience,
) -> Watch:
    """The watch after looking now."""
    if before is None or now - before.looked > patience.silent / 2:
        return Watch(missing, now, patience.first, heard, now, now)
    if missing != before.missing:
        before = replace(before, missing=missing, missing_since=now, patience=patience.first)
    if heard != before.heard:
        before = replace(before, heard=heard, heard_since=now)
    return replace(before, looked=now)


def is_stuck(watch: Watch) -> bool:
    """Have the same tasks been missing for long enough?"""
    return bool(watch.missing) and watch.looked - watch.missing_since >= watch.patience


def published(watch: Watch, patience: Patience) -> Watch:
    """The watch after its missing tasks were published again."""
    longer = min(2 * watch.patience, patience.most)
    return replace(watch, missing_since=watch.looked, patience=longer)


def is_silent(watch: Watch, patience: Patience) -> bool:
    """Has the client been silent for its whole time?"""
    return watch.looked - watch.heard_since >= patience.silent


def that_fit(
    messages: Iterable[Message], depths: Mapping[Lane, int], nearly_empty: int
) -> list[Message]:
    """Those whose lane is nearly empty: what waits in a full one may well be these.

    In the slow lane a few messages last long.
    """
    bounds = {Lane.SLOW: max(1, nearly_empty // _SLOWER)}
    return [one for one in messages if depths[one.lane] < bounds.get(one.lane, nearly_empty)]


@dataclass(frozen=True)
class Beating:
    """The marks of whoever computes a task, and since when this watcher sees these."""

    marks: tuple[str, ...]
    since: float


def beating(
    before: Mapping[Task, Beating], marks: Mapping[Task, tuple[str, ...]], now: float
) -> dict[Task, Beating]:
    """What is seen of the tasks that somebody computes; as with clients, only changes count."""
    return {
        task: known
        if (known := before.get(task)) is not None and known.marks == some
        else Beating(some, now)
        for task, some in marks.items()
    }


def not_computed(
    missing: Iterable[Task], beats: Mapping[Task, Beating], now: float, stale: float
) -> tuple[Task, ...]:
    """Those tasks whose marks, if there are any, have not changed for too long."""
    return tuple(task for task in missing if task not in beats or now - beats[task].since >= stale)
