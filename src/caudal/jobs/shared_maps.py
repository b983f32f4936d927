"""Map outputs over a dataset: they belong to the dataset, and every job that needs one reads it.

    {root}mapped/{part}/{digest}   root: of the dataset; digest: of the files that were mapped
    {root}used/{part}/{slot}       mark: outputs of that part were asked for in that slot of time

Rules
1. The key names everything that an output depends on. `part` is a digest of the table's part of the
   plan, of the number of partitions, and of all versions in job.json. Hints of other tables are not
   used, and the output holds no number of a batch. So whatever has this key has these rows.
2. A worker of other versions than those of job.json creates no output under this key. If it may
   compute tasks of the job all the same (levels.py), its output belongs to the job, as other
   outputs do. So no question fails or waits because of another DuckDB, and nobody else reads a
   mixture.
3. An output with a failed scan belongs to its job, too. So an error that a lack of memory caused is
   not kept for others.
4. A shared output may be swept at any time, and is then computed again, perhaps in other bytes.
   Facts say which outputs exist now; a reader that finds other bytes reads the index again.
5. The files of a table are named by `inputs/T` of the job, which a gateway creates after job.json.
   They follow from the dataset's version, so anyone creates the same bytes.
"""

import contextlib
from collections.abc import Iterator, Mapping

import msgspec

from caudal.datasets.contents import Contents
from caudal.datasets.files import MissingFileError, read_file
from caudal.datasets.groups import group_files
from caudal.errors import AlreadyExistsError, FormatError, NotFoundError
from caudal.formats import file_groups, mapped
from caudal.formats.digest import digest
from caudal.formats.file_groups import FileGroup, GroupFile
from caudal.formats.job import AskedDataset
from caudal.formats.keys import Task
from caudal.formats.mapped import MappedReader
from caudal.formats.merged import MergedMember
from caudal.formats.outcomes import End, digest_of_digests
from caudal.jobs import objects
from caudal.jobs.facts import StoreFacts
from caudal.jobs.interfaces import InputPart
from caudal.jobs.intervals import IntervalSet
from caudal.jobs.levels import may_share
from caudal.jobs.runs import JobRun
from caudal.store.below import StoreBelow
from caudal.store.port import Store, entries

_SLOTS = 7  # marks of use in the time after which outputs are unused


def dataset_of(job_run: JobRun) -> AskedDataset | None:
    """Return the dataset that a job reads; None if its client sends the tables."""
    return job_run.job.request.dataset or None


def facts_of(store: Store, job_run: JobRun) -> StoreFacts:
    """Return the facts about a run, whoever its map outputs belong to."""
    if dataset_of(job_run) is None:
        return StoreFacts(store, job_run.keys)
    return SharedFacts(store, job_run)


def output_key(
    store: Store, job_run: JobRun, task: Task, data: bytes, versions: Mapping[str, str]
) -> str:
    """Return where the output of a task lies that an engine of these versions made."""
    shares = is_shared(job_run, task) and may_share(job_run.job.versions, versions)
    if not shares or _has_failed(data):
        return job_run.keys.output(task)
    return shared_key(store, job_run, task.name, task.number)


def is_shared(job_run: JobRun, task: Task) -> bool:
    return task.kind == "map" and dataset_of(job_run) is not None


def is_made(store: Store, job_run: JobRun, task: Task) -> bool:
    """Return whether the output of a task exists."""
    if is_shared(job_run, task):
        key = shared_key(store, job_run, task.name, task.number)
        if objects.exists(store, key):
            return True
    return objects.exists(store, job_run.keys.output(task))


def part_of(job_run: JobRun, table: str) -> str:
    """Return the digest of everything but the files that the table's map outputs depend on."""
    if table not in job_run.parts:
        job, split = job_run.job, job_run.split
        content = (
            sorted(job.versions.items()),
            split.table(table),
            split.plan.tables[table],
            job.request.options.partitions,
            job.request.application.sentiment,
        )
        job_run.parts[table] = digest(msgspec.json.encode(content, order="deterministic"))
    return job_run.parts[table]


def groups_of(store: Store, job_run: JobRun, table: str) -> tuple[FileGroup, ...]:
    """Return the files of a table, in groups. Raise NotFoundError until its gateway named them."""
    if table not in job_run.files:
        job_run.files[table] = objects.file_groups(store, job_run.keys, table)
    return job_run.files[table]


def shared_key(store: Store, job_run: JobRun, table: str, number: int) -> str:
    return f"{_folder(job_run, table)}{_group(store, job_run, table, number).digest}"


def member_of(job_run: JobRun, found: MappedReader, number: int) -> MergedMember:
    """Return what a merge keeps of the map output of a batch."""
    index = msgspec.structs.replace(found.index, batch=number)
    own = found.key == job_run.keys.mapped(index.table, number)
    return MergedMember(index, found.body, own=own and dataset_of(job_run) is not None)


def member_key(store: Store, job_run: JobRun, member: MergedMember) -> str:
    """Return where a map output lies that was merged."""
    index = member.index
    if dataset_of(job_run) is None or member.own or index.failed:
        return job_run.keys.mapped(index.table, index.batch)
    return shared_key(store, job_run, index.table, index.batch)


def open_mapped(store: Store, job_run: JobRun, table: str, number: int) -> MappedReader:
    """Return a reader of the map output of a batch."""
    if dataset_of(job_run) is None:
        return objects.mapped_reader(store, job_run.keys, table, number)
    source = _group(store, job_run, table, number).digest
    try:
        return objects.shared_reader(store, f"{_folder(job_run, table)}{source}", table, source)
    except NotFoundError:  # or it belongs to the job (rules 2 and 3)
        return objects.shared_reader(store, job_run.keys.mapped(table, number), table, source)


def open_again(store: Store, job_run: JobRun, index: mapped.Index) -> MappedReader | None:
    """Open an output that may have been made again since it was merged (rule 4)."""
    if dataset_of(job_run) is None or index.failed:
        return None
    return open_mapped(store, job_run, index.table, index.batch)


def name_files(store: Store, job_run: JobRun, contents: Contents) -> None:
    """Create the objects that name the files of the job's tables (rule 5)."""
    for table in job_run.shape.tables:
        groups = [
            FileGroup(tuple(GroupFile(one.path, one.bytes, one.digest) for one in group))
            for group in group_files(contents.tables[table])
        ]
        with contextlib.suppress(AlreadyExistsError):
            store.create(job_run.keys.inputs(table), file_groups.encode(groups))


def mark_used(store: Store, job_run: JobRun, now: float, unused_seconds: float) -> None:
    """Note that outputs of the job's parts are used: at most one object for each slot of time."""
    for table in job_run.shape.tables:
        with contextlib.suppress(AlreadyExistsError):
            store.create(_mark(job_run, table, now, unused_seconds), b"used", lasting=False)


def gather_files(store: Store, job_run: JobRun, task: Task) -> list[InputPart]:
    """Return the Parquet files that a map reads, checked against their digests."""
    asked = dataset_of(job_run)
    assert asked is not None
    below, group = StoreBelow(store, asked.root), _group(store, job_run, task.name, task.number)
    try:
        return [InputPart(read_file(below, task.name, one)) for one in group.files]
    except MissingFileError as error:
        raise FormatError(
            f"version {asked.version} of {asked.name} was vacuumed while it was asked, or lost a "
            f"file ({error}): ask a newer version"
        ) from None


def slot_of(now: float, unused_seconds: float) -> int:
    return int(now * _SLOTS / unused_seconds)


def is_unused(newest: int, now: float, unused_seconds: float) -> bool:
    """Return whether outputs whose newest mark is of this slot were unused for the whole time."""
    return slot_of(now, unused_seconds) - newest > _SLOTS


class SharedFacts(StoreFacts):
    """Facts about a job over a dataset: its batches are groups of files, and all are there."""

    def __init__(self, store: Store, job_run: JobRun) -> None:
        super().__init__(store, job_run.keys)
        self._job_run = job_run

    @property
    def may_lose_maps(self) -> bool:
        """Return True: the janitor may sweep them."""
        return True

    def ending(self, table: str) -> End | None:
        groups = self._groups(table)
        if groups is None:
            return None
        digests = digest_of_digests(one.digest for one in groups)
        return End(len(groups), sum(one.bytes for one in groups), digests)

    def mapped(self, table: str, group: int) -> IntervalSet:
        members = self._members(table, group)
        folder = _folder(self._job_run, table)
        there = {entry.key.removeprefix(folder) for entry in entries(self._store, folder)}
        own = super().mapped(table, group) if members else IntervalSet.of(())
        return IntervalSet.of(
            number for number, one in enumerate(members) if one.digest in there or number in own
        )

    def groups(self, table: str) -> Iterator[int]:
        count = len(self._groups(table) or ())
        return iter(range(-(-count // self._job_run.shape.group)))

    def batches(self, table: str, group: int) -> IntervalSet:
        return IntervalSet.of(range(len(self._members(table, group))))

    def _members(self, table: str, group: int) -> tuple[FileGroup, ...]:
        size = self._job_run.shape.group
        return (self._groups(table) or ())[group * size : (group + 1) * size]

    def _groups(self, table: str) -> tuple[FileGroup, ...] | None:
        try:
            return groups_of(self._store, self._job_run, table)
        except NotFoundError:
            return None


def _group(store: Store, job_run: JobRun, table: str, number: int) -> FileGroup:
    groups = groups_of(store, job_run, table)
    if number >= len(groups):
        raise NotFoundError(f"table {table} has no batch {number}")
    return groups[number]


def _folder(job_run: JobRun, table: str) -> str:
    asked = dataset_of(job_run)
    assert asked is not None
    return f"{asked.root}mapped/{part_of(job_run, table)}/"


def _mark(job_run: JobRun, table: str, now: float, unused_seconds: float) -> str:
    asked = dataset_of(job_run)
    assert asked is not None
    slot = slot_of(now, unused_seconds)
    return f"{asked.root}used/{part_of(job_run, table)}/{slot:012}"


def _has_failed(data: bytes) -> bool:
    return bool(mapped.open_bytes(data).index.failed)
