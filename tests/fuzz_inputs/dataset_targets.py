"""Objects of datasets, loads and facts, damaged and read. What is believed must be harmless: no
path leads out of the dataset, and everything that is derived from it can be derived."""

import re
from collections.abc import Iterable
from random import Random

import msgspec

from caudal.datasets import keys
from caudal.datasets.contents import Contents, decode_checkpoint, first_contents, follow
from caudal.datasets.delta import delta_commit
from caudal.datasets.delta_checkpoint import delta_checkpoint
from caudal.datasets.documents import DatasetHead, decode_batch, decode_head, decode_version
from caudal.datasets.groups import group_files
from caudal.datasets.sources import Offered, load_id, sort_sources
from caudal.datasets.stream_parts import Beginning, next_step, parts_of
from caudal.errors import FormatError, UsageError
from caudal.formats import file_groups, job, loaded, task_facts
from caudal.jobs.load_requests import check_load
from caudal.jobs.requests import check_request, identity
from tests.fuzz_inputs import dataset_seeds, seeds
from tests.fuzz_inputs.damage import damaged_json
from tests.fuzz_inputs.forging import Target, redocumented, reframed

_PATH = re.compile("[A-Za-z0-9-]+/[A-Za-z0-9_-]+[.]parquet")


def _harmless(paths: Iterable[str]) -> None:
    for path in paths:
        assert _PATH.fullmatch(path), path


def _created(head: DatasetHead) -> None:
    """Everything that is derived from what a dataset is."""
    for table in head.tables:
        keys.delta_key(table.name, 0)
        assert "/" not in table.name, table.name


def _head(chance: Random) -> object:
    head = decode_head(redocumented(seeds.chosen(dataset_seeds.heads, chance), chance))
    _created(head)
    return head


def _version(chance: Random) -> object:
    number, data = chance.choice(dataset_seeds.versions())
    version = decode_version(redocumented(data, chance), number)
    if number == 0:
        contents = first_contents(version)
        _created(contents.head)
    else:
        honest = dataset_seeds.honest_versions()
        before = follow(first_contents(honest[0]), honest[1:number])
        contents = follow(before, [version])
    _seen(contents)
    return [delta_commit(version, table.name) for table in contents.head.tables]


def _checkpoint(chance: Random) -> object:
    data = redocumented(seeds.chosen(dataset_seeds.checkpoints, chance), chance)
    contents = decode_checkpoint(data, dataset_seeds.dataset()[1].number)
    _created(contents.head)
    _seen(contents)
    return [delta_checkpoint(contents, table.name) for table in contents.head.tables]


def _seen(contents: Contents) -> None:
    """Look at contents as loads and questions do."""
    assert contents.tables.keys() == {table.name for table in contents.head.tables}
    for files in contents.tables.values():
        _harmless(file.path for file in files)
        group_files(files)
        assert all(file.bytes >= 0 and 0 <= file.added <= contents.number for file in files)
    offered = Offered("t", "t.csv", 9, "ab")
    sort_sources(contents, [offered], again=True)
    load_id(contents, [offered], 9, "")
    with memoryview(b"a,1,one\n") as data:
        next_step(parts_of(contents, "t"), Beginning(b"k,n,text\n"), data, is_end=True)


def _progress(chance: Random) -> object:
    found = decode_batch(redocumented(seeds.chosen(dataset_seeds.progress, chance), chance), "k")
    _harmless(file.path for file in (found.file, found.rejects) if file is not None)
    return found


def _loaded(chance: Random) -> object:
    data = reframed(seeds.chosen(dataset_seeds.loaded_batches, chance), chance)
    found, files = loaded.taken_apart(data)
    _harmless(files)
    for file in loaded.named_files(found):
        assert len(files[file.path]) == file.bytes
    return loaded.without_files(data, found)


def _facts(chance: Random) -> object:
    tasks, sample = dataset_seeds.facts()
    if chance.random() < 0.5:
        return task_facts.decode_tasks(redocumented(tasks, chance), "k")
    return task_facts.decode_sample(redocumented(sample, chance), "k")


def _groups(chance: Random) -> object:
    data = redocumented(seeds.chosen(dataset_seeds.groups, chance), chance)
    found = file_groups.decode(data, "k")
    _harmless(file.path for group in found for file in group.files)
    return [(group.digest, group.bytes) for group in found]


def _load_request(chance: Random) -> object:
    text = damaged_json(seeds.chosen(dataset_seeds.load_requests, chance), chance)
    try:
        request = msgspec.json.decode(text, type=job.Request)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(str(error)) from None
    check_request(request)
    check_load(request)
    return identity(request)


_DECODERS = (FormatError,)
DATASET_TARGETS = {
    "dataset head": Target(_head, _DECODERS),
    "version": Target(_version, _DECODERS, 3),
    "checkpoint": Target(_checkpoint, _DECODERS, 3),
    "load progress": Target(_progress, _DECODERS),
    "loaded batch": Target(_loaded, _DECODERS, 2),
    "facts": Target(_facts, _DECODERS),
    "file groups": Target(_groups, _DECODERS),
    "load request": Target(_load_request, (FormatError, UsageError), 2),
}
