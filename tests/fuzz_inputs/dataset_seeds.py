"""Honest objects of a dataset, made by the code that makes them for users."""

from functools import cache

import msgspec

from caudal.datasets import keys
from caudal.datasets.compaction import compact
from caudal.datasets.contents import Contents, encode_checkpoint
from caudal.datasets.documents import BatchDone, DatasetVersion, decode_version, encode_batch
from caudal.datasets.stream_loader import StreamLoader
from caudal.datasets.vacuum import vacuum
from caudal.embedded.dataset_load import open_loader
from caudal.embedded.dataset_rows import rows_source
from caudal.embedded.dataset_stream import EmbeddedTarget
from caudal.formats import file_groups, job, loaded, mapped, task_facts
from caudal.formats.loads import LoadedBatch, LoadRequest, LoadSource, StreamPart
from caudal.run_options import RunOptions
from caudal.store.memory import MemoryStore
from tests.fuzz_inputs import seeds

_ROWS = [{"k": "a", "n": "1", "text": "one"}, {"k": "b", "n": "x", "text": None}]
_LATER = 10.0**11
_DIGEST = "0123456789abcdef" * 2


class _Feed:
    """A stream in two pieces."""

    def __init__(self) -> None:
        self._pieces: list[bytes | None] = [b"k,n,text\na,1,one\n", None, b"b,2,two\nc,3"]

    def read(self, timeout: float | None) -> bytes | None:
        del timeout
        return self._pieces.pop(0) if self._pieces else b""


@cache
def dataset() -> tuple[MemoryStore, Contents]:
    """A dataset with every kind of version: loads, a stream, a compaction, a vacuum."""
    store, app = MemoryStore(), seeds.application()
    with open_loader(app, "shelf", store, RunOptions(threads=1)) as loader:
        for key in ("one", "two"):
            loader.load([rows_source(app, "t", _ROWS, key)])
        StreamLoader(EmbeddedTarget(loader), "t", 0.0, lambda _: None).load(_Feed())
        compact(store, _LATER)
        vacuum(store, 2 * _LATER, keep=0.0, grace=0.0)
        return store, loader.contents()


@cache
def heads() -> list[bytes]:
    return [dataset()[0].read(keys.DATASET)]


@cache
def versions() -> list[tuple[int, bytes]]:
    store, contents = dataset()
    return [(number, store.read(keys.version_key(number))) for number in range(contents.number + 1)]


@cache
def honest_versions() -> list[DatasetVersion]:
    return [decode_version(data, number) for number, data in versions()]


@cache
def checkpoints() -> list[bytes]:
    return [encode_checkpoint(dataset()[1])]


@cache
def progress() -> list[bytes]:
    files = [file for one in honest_versions() for many in one.changes.values() for change in many
             for file in change.add]  # fmt: skip
    return [encode_batch(BatchDone(0, 2, 1, 0, files[0], files[1])),
            encode_batch(BatchDone(3, 0, 0, 0, None, None))]  # fmt: skip


@cache
def loaded_batches() -> list[bytes]:
    store, contents = dataset()
    found = []
    for number, table in enumerate(("t", keys.REJECTS)):
        held = contents.tables[table][0]
        data = store.read(keys.file_key(table, held.path))
        (stored,) = (file for one in honest_versions() for change in one.changes.get(table, ())
                     for file in change.add if file.path == held.path)  # fmt: skip
        plain = mapped.encode(
            table="t", batch=number, file="t.csv", rows=2, repaired=0,
            rejects=mapped.reject_rows([]), stages={}, source_bytes=9, source_digest="ab",
        )  # fmt: skip
        one = LoadedBatch(0, stored, None, 1) if number else LoadedBatch(0, stored)
        found.append(loaded.put_together(plain, one, [data]))
    return found


def facts() -> list[bytes]:
    task = task_facts.TaskFact(
        "map", "t", 3, "worker-1", 1.0, 2.5, "done", 2, 10, 20, {"scan_1": (3, 90)}, "why"
    )
    process = task_facts.ProcessFact("worker-1", "healthy", 3, 1 << 28, 1.5, "following 3")
    return [
        task_facts.encode_tasks(task_facts.TaskFacts((task, task))),
        task_facts.encode_sample(task_facts.ProcessSample(1e9, "medic-3", 4, (process,))),
    ]


def groups() -> list[bytes]:
    file = file_groups.GroupFile("a/0.parquet", 100, _DIGEST)
    found = [file_groups.FileGroup((file,) * count) for count in (2, 1)]
    return [file_groups.encode(found)]


@cache
def load_requests() -> list[bytes]:
    """Requests of clients that load: a file, a part of a stream, and rows."""
    part = StreamPart(7, _DIGEST, b"a,1,one")
    sources = (
        LoadSource("t", "/home/t.csv", 99, _DIGEST, "t.csv"),
        LoadSource("t", "standard input", 9, _DIGEST, part=part),
        LoadSource("t", "appended rows k", 9, _DIGEST, content=_DIGEST),
    )
    text = job.Text.of(seeds.application())
    return [msgspec.json.encode(job.Request(text, load=LoadRequest("shelf", sources)))]
