"""The index of jobs: which may run, when results expire, and which jobs an owner has (ADR 64).

Without it, every round and every page would list `jobs/`, which takes S3 one request for each
thousand jobs that are kept.

    index/running/J.RUN                              it may run, or has ended a short time ago
    index/ended/{hour:08}/{due:010}.J.RUN            it has ended; its results expire at `due`
    index/owners/OWNER/{hour:08}/{back:010}.J.RUN    the jobs of an owner, the newest first

Rules
1. Marks are hints: job.json and the outcome decide. A mark is created after job.json named its run,
   and job.json never names a run twice. So a mark whose run is not named now is garbage.
2. A gateway creates the marks before it publishes or answers. So every job that was confirmed to
   its client is in the index.
3. A janitor creates the new mark of an ended job before it deletes the old one. It deletes the last
   mark when nothing is left of the run. Marks of a run contain the key of its owner's mark, so that
   this one is deleted too.
4. Jobs without a mark (an older Caudal made them, or their gateway died before rule 2) are found by
   a listing of `jobs/` when a gateway starts, and then every hour (janitor.py).
"""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from caudal.errors import AlreadyExistsError, NotFoundError, UsageError
from caudal.formats.job import Job
from caudal.jobs import objects
from caudal.store.port import Store, entries, folder_names

INDEX = "index/"
_RUNNING, _ENDED, _OWNERS = f"{INDEX}running/", f"{INDEX}ended/", f"{INDEX}owners/"
_LAST = 9_999_999_999  # seconds since 1970; times count back from here
_HOUR = 3_600
_NAME = re.compile(r"(?P<job>[A-Za-z0-9_-]{1,64})\.(?P<run>[A-Za-z0-9_-]{1,64})\Z")
_PLACE = re.compile(rf"(?P<time>\d{{10}})\.{_NAME.pattern}")


@dataclass(frozen=True)
class Mark:
    """A run in the index. `due` is 0 unless it has ended: then its results expire at that time."""

    key: str
    job: str
    run: str
    due: int = 0

    @property
    def name(self) -> str:
        return f"{self.job}.{self.run}"


def enrol(store: Store, job: Job) -> None:
    """Put a job into the index. Doing it again changes nothing."""
    _create(store, owner_key(job), b"")
    _create(store, running_mark(job).key, owner_key(job).encode())


def running_mark(job: Job) -> Mark:
    return Mark(f"{_RUNNING}{job.id}.{job.run}", job.id, job.run)


def ended_mark(job: Job, ends: float) -> Mark:
    """Return the mark of an ended job whose results expire at that time."""
    due = min(max(int(ends), 0), _LAST)
    return Mark(f"{_ENDED}{due // _HOUR:08}/{due:010}.{job.id}.{job.run}", job.id, job.run, due)


def owner_key(job: Job) -> str:
    """Return the key that lists the job among those of its owner."""
    back = _LAST - min(max(int(job.created), 0), _LAST)
    return f"{_owner_hours(job.owner)}{back // _HOUR:08}/{back:010}.{job.id}.{job.run}"


def move(store: Store, mark: Mark, job: Job, ends: float) -> None:
    """Replace the mark of an ended job by one that says when its results expire (rule 3)."""
    _create(store, ended_mark(job, ends).key, owner_key(job).encode())
    store.delete(mark.key, lasting=False)


def remove(store: Store, mark: Mark) -> None:
    """Remove a run from the index: first from the jobs of its owner, which its mark names."""
    with contextlib.suppress(NotFoundError):
        owned = objects.mark_text(store, mark.key)
        if owned.startswith(_OWNERS) and owned.endswith(f".{mark.name}"):
            store.delete(owned, lasting=False)
    store.delete(mark.key, lasting=False)


def running_marks(store: Store) -> list[Mark]:
    """Return the marks of all jobs that may run."""
    return [mark for one in entries(store, _RUNNING) if (mark := _running(one.key)) is not None]


def ended_marks(store: Store, now: float) -> Iterator[Mark]:
    """Yield the marks of ended jobs whose results expire until now."""
    hours = [one for one in folder_names(store, _ENDED) if one.isdecimal()]
    for hour in hours:
        if int(hour) * _HOUR <= now:
            found = map(_ended, (one.key for one in entries(store, f"{_ENDED}{hour}/")))
            yield from (mark for mark in found if mark is not None and mark.due <= now)


def all_ended_marks(store: Store) -> Iterator[Mark]:
    """Yield the marks of all ended jobs."""
    found = map(_ended, (one.key for one in entries(store, _ENDED)))
    yield from (mark for mark in found if mark is not None)


def owned_marks(store: Store, owner: str, after: str) -> Iterator[tuple[str, Mark]]:
    """Yield the jobs of an owner, the newest first, each with its place, from behind `after`."""
    hours, first = _owner_hours(owner), _hour_of(after)
    for hour in sorted(folder_names(store, hours)):
        if hour >= first:
            for entry in entries(store, f"{hours}{hour}/"):
                place = entry.key.rpartition("/")[2]
                if place > after and (known := _PLACE.match(place)):
                    yield place, Mark(entry.key, known["job"], known["run"])


def stored_jobs(store: Store) -> Iterator[str]:
    """Yield the id of every job that has any object: a listing that grows with the kept jobs."""
    return folder_names(store, "jobs/")


def _owner_hours(owner: str) -> str:
    return f"{_OWNERS}{owner}/"


def _hour_of(after: str) -> str:
    if not after:
        return ""
    known = _PLACE.match(after)
    if not known:
        raise UsageError("`after` must be the `next` of the page before: list from the beginning")
    return f"{int(known['time']) // _HOUR:08}"


def _running(key: str) -> Mark | None:
    known = _NAME.match(key.removeprefix(_RUNNING))
    return Mark(key, known["job"], known["run"]) if known else None


def _ended(key: str) -> Mark | None:
    known = _PLACE.match(key.rpartition("/")[2])
    return Mark(key, known["job"], known["run"], int(known["time"])) if known else None


def _create(store: Store, key: str, data: bytes) -> None:
    """Create a mark. A power cut may take it: the gateway that starts then finds the job."""
    with contextlib.suppress(AlreadyExistsError):
        store.create(key, data, lasting=False)
