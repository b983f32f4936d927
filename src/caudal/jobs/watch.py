"""Decides when to publish a job's missing tasks again, and when its client has left.

Rules
1. Tasks are published again when the same tasks were missing for the time `patience`. Patience
   doubles with every publication that changed nothing. It is reset when the missing tasks change.
2. A client has left when no gateway heard it for its `silent_seconds`. Gateways leave marks in the
   store when they hear a client. A client counts as silent if no new mark appeared while this
   watcher looked, measured by the watcher's own clock. So differing clocks expire no job.
3. A task that a worker computes is not published again. Workers leave marks too, which change as
   long as the worker lives. Again only changes that this watcher saw count.
4. A watcher that did not look for too long (it was suspended, or has just started) knows nothing
   about that time. It starts from the beginning and waits for one full timeout first.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from caudal.formats.keys import Lane, Message, Task

_SLOWER = 16  # the slow lane counts as full with so many times fewer messages


@dataclass(frozen=True)
class Patience:
    """Times to wait, in seconds."""

    first: float
    most: float
    silent: float  # for a silent client


@dataclass(frozen=True)
class Watch:
    """The memory of one watcher about one job."""

    missing: tuple[Task, ...]
    missing_since: float
    patience: float
    heard: tuple[str, ...]
    heard_since: float
    looked: float
    standing_since: float  # nothing was computed since then, and the same tasks were missing


def observe(
    before: Watch | None,
    now: float,
    missing: tuple[Task, ...],
    heard: tuple[str, ...],
    patience: Patience,
    *,
    is_computed: bool = False,
) -> Watch:
    """Return the watch after a look at the job now. `missing` are tasks that nobody computes;
    `is_computed` says whether another one is."""
    if before is None or now - before.looked > patience.silent / 2:
        return Watch(missing, now, patience.first, heard, now, now, now)
    if missing != before.missing:
        before = replace(before, missing=missing, missing_since=now, patience=patience.first)
        before = replace(before, standing_since=now)
    if is_computed:
        before = replace(before, standing_since=now)
    if heard != before.heard:
        before = replace(before, heard=heard, heard_since=now)
    return replace(before, looked=now)


def is_stuck(watch: Watch) -> bool:
    """Return whether the same tasks have been missing for the whole patience."""
    return bool(watch.missing) and watch.looked - watch.missing_since >= watch.patience


def stands_for(watch: Watch) -> float:
    """Return for how long this watcher saw the job get nowhere, published again or not."""
    return watch.looked - watch.standing_since


def published(watch: Watch, patience: Patience) -> Watch:
    """Return the watch after its missing tasks were published again."""
    longer = min(2 * watch.patience, patience.most)
    return replace(watch, missing_since=watch.looked, patience=longer)


def is_silent(watch: Watch, patience: Patience) -> bool:
    """Return whether the client has been silent for its whole time."""
    return watch.looked - watch.heard_since >= patience.silent


def that_fit(
    messages: Iterable[Message], depths: Mapping[Lane, int], nearly_empty: int
) -> list[Message]:
    """Return the messages whose lane is nearly empty. A fuller lane may already hold them.

    In the slow lane, few messages already take long, so its bound is lower.
    """
    bounds = {Lane.SLOW: max(1, nearly_empty // _SLOWER)}
    return [one for one in messages if depths[one.lane] < bounds.get(one.lane, nearly_empty)]


@dataclass(frozen=True)
class Beating:
    """The marks of the workers that compute a task, and since when this watcher sees them."""

    marks: tuple[str, ...]
    since: float


def beating(
    before: Mapping[Task, Beating], marks: Mapping[Task, tuple[str, ...]], now: float
) -> dict[Task, Beating]:
    """Return the marks per task, with a new time for each task whose marks changed."""
    return {
        task: known
        if (known := before.get(task)) is not None and known.marks == some
        else Beating(some, now)
        for task, some in marks.items()
    }


def not_computed(
    missing: Iterable[Task], beats: Mapping[Task, Beating], now: float, stale: float
) -> tuple[Task, ...]:
    """Return the tasks that have no marks, or whose marks have not changed for `stale`."""
    return tuple(task for task in missing if task not in beats or now - beats[task].since >= stale)
