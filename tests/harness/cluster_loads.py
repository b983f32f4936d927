"""Loads of the small sales application into a cluster's dataset."""

from collections.abc import Sequence
from pathlib import Path

from caudal.client.batches import Compress
from caudal.client.http import HttpGateways
from caudal.client.load import ClusterLoad, file_of, load
from caudal.client.submit import Watching
from caudal.datasets.cluster_place import ClusterDataset, locate
from caudal.datasets.files import read_file
from caudal.datasets.offered_files import offered_files
from caudal.datasets.parquet import read_rows
from caudal.datasets.reports import LoadReport
from caudal.files.sources import Sources
from caudal.formats.job import Options
from caudal.formats.tokens import NOBODY
from caudal.model import Application
from caudal.store.port import Store
from tests.harness.shelves import sales_app

SMALL = Options(batch_bytes=64, group=2)


def cluster_order(
    folder: Path,
    *,
    dataset: str = "shelf",
    app: Application | None = None,
    options: Options = SMALL,
    again: bool = False,
    **files: Sequence[str],
) -> ClusterLoad:
    """Return a load of the given files of tables."""
    app = app or sales_app()
    tables = [table for table in app.tables if table.name in files]
    columns = {table.name: table.columns for table in tables}
    sources = [
        file_of(one, columns[one.offered.table], options.batch_bytes)
        for one in offered_files(Sources(folder, files), tables)
    ]
    return ClusterLoad(app, dataset, sources, options, Compress.NEVER, again)


def cluster_load(
    gateway: str, order: ClusterLoad, token: str | None = None, watching: Watching | None = None
) -> LoadReport:
    with HttpGateways(gateway.split(","), token, patience_seconds=5.0) as gateways:
        return load(order, gateways, watching)[0]


def stored_rows(place: ClusterDataset, table: str) -> list[dict[str, object]]:
    """Return the rows of a table at the newest version, in their order."""
    files = place.contents().tables[table]
    rows: list[dict[str, object]] = (
        read_rows(read_file(place.below, table, file) for file in files).to_pylist()
        if files
        else []
    )
    return rows


def shelf_of(store: Store, owner: str = NOBODY, name: str = "shelf") -> ClusterDataset:
    return locate(store, owner, name)
