"""Reads the facts that workers and gateways wrote for people who watch (formats/task_facts.py).

What cannot be read is left out: facts may be lost at any time.
"""

import contextlib
from collections.abc import Iterator

from caudal.errors import FormatError, NotFoundError
from caudal.formats.replies import TaskPage
from caudal.formats.task_facts import (
    PROCESSES,
    SLOT_SECONDS,
    ProcessSample,
    TaskFact,
    sample_key,
)
from caudal.jobs import objects
from caudal.jobs.runs import JobRun
from caudal.store.port import Store, entries

MOST_OBJECTS = 200  # read for one page of tasks
KEPT_SECONDS = 3_600.0  # of process samples
MOST_SAMPLES = round(KEPT_SECONDS / SLOT_SECONDS)


def tasks_of(store: Store, job_run: JobRun, after: str) -> TaskPage:
    """Return the tasks that were written after the object `after`, oldest objects first."""
    prefix = job_run.keys.facts()
    page = store.list(prefix, after=f"{prefix}{after}" if after else "", limit=MOST_OBJECTS)
    found: list[TaskFact] = []
    for entry in page.entries:
        with contextlib.suppress(NotFoundError, FormatError):
            found += objects.task_facts(store, entry.key).tasks
    last = page.entries[-1].key.removeprefix(prefix) if page.entries else after
    return TaskPage(tuple(found), last, page.last is not None)


def samples_since(store: Store, since: float) -> Iterator[ProcessSample]:
    """Yield the process samples taken after that moment, oldest first."""
    page = store.list(PROCESSES, after=sample_key(since), limit=MOST_SAMPLES)
    for entry in page.entries:
        with contextlib.suppress(NotFoundError, FormatError):
            yield objects.process_sample(store, entry.key)


def forget_samples(store: Store, before: float) -> None:
    """Delete the process samples taken before that moment."""
    end = sample_key(before)
    for entry in entries(store, PROCESSES):
        if entry.key >= end:
            return
        store.delete(entry.key, lasting=False)
