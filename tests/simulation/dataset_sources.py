"""Sources of simulated loads: real files of the little application, cleaned once per process."""

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

import msgspec
import pyarrow as pa

from caudal.datasets.commits import open_contents
from caudal.datasets.contents import Contents
from caudal.datasets.documents import DatasetHead
from caudal.datasets.files import read_file
from caudal.datasets.keys import REJECTS
from caudal.datasets.parquet import read_rows
from caudal.datasets.sources import Offered
from caudal.embedded.dataset_load import open_loader
from caudal.embedded.dataset_sources import file_sources
from caudal.files.sources import Sources
from caudal.formats.digest import digest
from caudal.store.memory import MemoryStore
from tests.simulation.applications import LITTLE, little_data
from tests.simulation.remembering import Asked, Tables, write_table

_ID = "5e3c8a54-94c1-4a4f-9f0e-0a4f4f1f9a11"
_BATCH_BYTES = 40
QUERIES = ("sums", "joined")


@dataclass(frozen=True)
class SimulatedSource:
    """A file of one table: which variant of the little application's data it holds."""

    table: str
    variant: int

    @property
    def digest(self) -> str:
        return digest(f"{self.table} {self.variant}".encode())

    def offered(self, name: str) -> Offered:
        return Offered(self.table, name, 100, self.digest)

    @property
    def batches(self) -> tuple[bytes, ...]:
        return tuple(little_data(self.variant, _BATCH_BYTES)[self.table])

    def rows(self) -> dict[str, pa.Table]:
        """The clean rows, and those that are rejected, as a loader would write them."""
        return cleaned(self.table, self.variant)[0]


ALL = tuple(SimulatedSource(table, variant) for table in ("t", "u") for variant in (0, 1))


@cache
def cleaned(table: str, variant: int) -> tuple[dict[str, pa.Table], DatasetHead]:
    """The rows of a source by table, and the head of the dataset; made by the real loader."""
    source, store = SimulatedSource(table, variant), MemoryStore()
    (described,) = (one for one in LITTLE.tables if one.name == table)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "source.csv"
        write_table(path, described, source.batches)
        with open_loader(LITTLE, "shelf", store) as loader:
            loader.load(file_sources(Sources(Path(name), {table: [str(path)]}), [described]))
    contents = open_contents(store)
    rows = {
        one: read_rows(read_file(store, one, file) for file in contents.tables[one])
        for one in (table, REJECTS)
        if contents.tables[one]
    }
    return rows, msgspec.structs.replace(contents.head, id=_ID, created=1_000)


def head() -> DatasetHead:
    return cleaned("t", 0)[1]


def asked() -> Asked:
    """What everybody asks. The data is that of the version which is asked."""
    return Asked(LITTLE, {"t": (), "u": ()}, {"below": 20}, QUERIES)


def data_of(contents: Contents) -> Tables:
    """The batches behind a version, in the order of its versions."""
    by_digest = {one.digest: one for one in ALL}
    found: dict[str, tuple[bytes, ...]] = {"t": (), "u": ()}
    for held in contents.sources:
        found[held.table] += by_digest[held.digest].batches
    return found


def pieces(rows: pa.Table, chance: Random) -> list[pa.Table]:
    """The rows of one to three files."""
    count = min(chance.choice((1, 2, 3)), max(1, rows.num_rows))
    size = -(-rows.num_rows // count)
    return [rows.slice(start, size) for start in range(0, rows.num_rows, size)]
