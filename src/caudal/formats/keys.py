"""Tasks, and the key of the one object that each of them makes.

Keys of a job. All but `job.json` contain its run, so objects of an earlier run under the same id
are never used:

    jobs/J/job.json
    jobs/J/RUN/outcome.json
    jobs/J/RUN/tables/T/end.json
    jobs/J/RUN/batches/T/{group:06}/{n:03}      what the client sent
    jobs/J/RUN/inputs/T                         files of a dataset, instead of batches
    jobs/J/RUN/mapped/T/{group:06}/{n:03}       output of map
    jobs/J/RUN/merged/T/{group:06}              output of merge: the indexes of a group
    jobs/J/RUN/folds/F/{partition:04}           output of fold
    jobs/J/RUN/results/Q                        output of finish

    jobs/J/RUN/seen/{slot:010}-GATEWAY          mark: a gateway heard the client
    jobs/J/RUN/running/KIND/NAME/NUMBER/{beat:06}-WORKER   mark: a worker computes that task
    jobs/J/RUN/facts/...                        what workers did, for people (task_facts.py)
    jobs/J/RUN/crowded                          mark: other owners wait, long tasks give way

A group is 256 consecutive batches (job.json states the number). So a worker that finishes a batch
lists at most 256 keys.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import msgspec

JOB_ID = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")  # also for runs
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")  # of tables, folds and queries
MOST_GROUPS = 1_000_000  # per table: a key has six digits for them
MOST_GROUP, MOST_PARTITIONS = 1_000, 9_999  # batches per group; partitions of a fold
MOST_SLOW = 16  # each step doubles a task's time; with 16 there is practically no limit
GROUP = 256  # batches per group, unless the job says otherwise
REJECTS = "rejects"  # the finish task that reports rejected rows; no query may have this name

Kind = Literal["map", "merge", "fold", "finish"]


class Task(msgspec.Struct, frozen=True, order=True):
    """One piece of work. `name` is a table, fold or query; `number` a batch, group or partition."""

    kind: Kind
    name: str
    number: int = 0


class Message(msgspec.Struct, frozen=True):
    """A task as it is sent to a worker."""

    job: str
    run: str
    task: Task
    group: int = GROUP  # batches per group of this job, for the lane
    slow: int = 0  # above 0: it uses the slow lane; roughly how often it was too slow
    format: int = 1

    @property
    def lane(self) -> "Lane":
        return lane_of(self.task, self.group, slow=self.slow > 0)


class Lane(StrEnum):
    """Queues. A map task's queue depends on its batch number, so small jobs overtake big ones."""

    FIRST = "map-0"  # batches 0–3
    EARLY = "map-1"  # 4–15
    MIDDLE = "map-2"  # 16–63
    LATE = "map-3"  # 64 and later
    FOLD = "fold"
    FINISH = "finish"
    SLOW = "slow"  # any kind: the task took long while others waited, or its owner has many jobs


def lane_of(task: Task, group: int = GROUP, *, slow: bool = False) -> Lane:
    """Return the queue for a task of a job with groups of that many batches."""
    if slow:
        return Lane.SLOW
    if task.kind == "fold":
        return Lane.FOLD
    if task.kind == "finish":
        return Lane.FINISH
    ordinal = task.number * (group if task.kind == "merge" else 1)
    for end, lane in ((4, Lane.FIRST), (16, Lane.EARLY), (64, Lane.MIDDLE)):
        if ordinal < end:
            return lane
    return Lane.LATE


def defect(message: Message) -> str:
    """Return why a message cannot be valid; empty if it can. Its names become parts of keys."""
    task = message.task
    most = {
        "map": MOST_GROUPS * max(message.group, 1),
        "merge": MOST_GROUPS,
        "fold": MOST_PARTITIONS,
        "finish": 1,
    }[task.kind]
    for wrong, what in (
        (not JOB_ID.match(message.job), "job"),
        (not JOB_ID.match(message.run), "run"),
        (not NAME.match(task.name), "name"),
        (not 1 <= message.group <= MOST_GROUP, "group"),
        (not 0 <= task.number < most, "number"),
        (not 0 <= message.slow <= MOST_SLOW, "slow"),
    ):
        if wrong:
            return f"its {what} cannot be one"
    return ""


@dataclass(frozen=True)
class Keys:
    """The keys of one run of a job."""

    job: str
    run: str
    group: int = GROUP

    @property
    def root(self) -> str:
        return f"jobs/{self.job}/{self.run}"

    @property
    def outcome(self) -> str:
        return f"{self.root}/outcome.json"

    def end(self, table: str) -> str:
        return f"{self.ends()}{table}/end.json"

    def ends(self) -> str:
        return f"{self.root}/tables/"

    def batch(self, table: str, number: int) -> str:
        return f"{self.batches(table, number // self.group)}{number % self.group:03}"

    def batches(self, table: str, group: int | None = None) -> str:
        return _group(f"{self.root}/batches/{table}/", group)

    def inputs(self, table: str) -> str:
        return f"{self.root}/inputs/{table}"

    def mapped(self, table: str, number: int) -> str:
        return f"{self.mapped_group(table, number // self.group)}{number % self.group:03}"

    def mapped_group(self, table: str, group: int) -> str:
        return _group(f"{self.root}/mapped/{table}/", group)

    def merged(self, table: str) -> str:
        return f"{self.root}/merged/{table}/"

    def folds(self, fold: str) -> str:
        return f"{self.root}/folds/{fold}/"

    def results(self) -> str:
        return f"{self.root}/results/"

    def seen(self) -> str:
        return f"{self.root}/seen/"

    def facts(self) -> str:
        return f"{self.root}/facts/"

    @property
    def crowded(self) -> str:
        return f"{self.root}/crowded"

    def running(self, task: Task | None = None) -> str:
        """Return the prefix of the marks of workers that compute a task; None: of all tasks."""
        folder = f"{self.root}/running/"
        return f"{folder}{task.kind}/{task.name}/{task.number}/" if task else folder

    def output(self, task: Task) -> str:
        """Return the key of the one object that a task makes."""
        match task.kind:
            case "map":
                return self.mapped(task.name, task.number)
            case "merge":
                return f"{self.merged(task.name)}{task.number:06}"
            case "fold":
                return f"{self.folds(task.name)}{task.number:04}"
            case "finish":
                return f"{self.results()}{task.name}"


def job_key(job: str) -> str:
    return f"jobs/{job}/job.json"


def _group(prefix: str, group: int | None) -> str:
    return prefix if group is None else f"{prefix}{group:06}/"
