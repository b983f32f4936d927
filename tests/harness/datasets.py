"""Small datasets for tests: versions without an engine."""

import pyarrow as pa

from caudal.datasets.commits import commit, create_dataset, next_version
from caudal.datasets.contents import Contents
from caudal.datasets.documents import (
    DatasetHead,
    DatasetTable,
    DatasetVersion,
    LoadedSource,
    TableChange,
)
from caudal.datasets.files import create_file
from caudal.formats.digest import digest
from caudal.store.port import Store

HEAD = DatasetHead(
    "5e3c8a54-94c1-4a4f-9f0e-0a4f4f1f9a11",
    "numbers",
    1_000,
    (
        DatasetTable("numbers", (("n", "BIGINT"), ("text", "VARCHAR")), "digest"),
        DatasetTable("rejects", (("reason", "VARCHAR"),)),
    ),
)


def some_rows(*numbers: int) -> pa.Table:
    texts = pa.array([f"number {n}" for n in numbers], pa.string())
    return pa.table({"n": pa.array(numbers, pa.int64()), "text": texts})


def append(store: Store, contents: Contents, *numbers: int, now: float = 10.0) -> Contents:
    """Commit a version that adds these rows, as one file, once."""
    source = LoadedSource("numbers", f"{numbers}", 1, digest(repr(numbers).encode()), len(numbers))
    name = digest(source.name.encode())
    file = create_file(store, "numbers", name, "00000000", some_rows(*numbers))

    def decide(newest: Contents) -> DatasetVersion | None:
        if any(held.digest == source.digest for held in newest.sources):
            return None
        number, time = next_version(newest, now)
        changes: dict[str, tuple[TableChange, ...]] = {"numbers": (TableChange((file,)),)}
        return DatasetVersion(number, time, "load", name, (source,), changes)

    return commit(store, contents, decide)


def new_dataset(store: Store) -> Contents:
    return create_dataset(store, HEAD)
