"""The datasets of series in a store."""

from dataclasses import dataclass

from caudal.errors import CaudalError
from caudal.series import layout
from caudal.series.catalog import Catalog
from caudal.series.manifest import VersionManifest
from caudal.store.port import folder_names


@dataclass(frozen=True)
class ListedDataset:
    """A dataset: its newest version, and how many series are consolidated.

    Without a version, `problem` says why: it was begun and has none yet, or it is damaged.
    """

    dataset_id: str
    head: VersionManifest | None
    series: int = 0
    problem: str = ""


def list_datasets(catalog: Catalog) -> list[ListedDataset]:
    """Return the datasets of a store, by name. One that is damaged hides no other."""
    names = sorted(folder_names(catalog.store, layout.DATASETS))
    return catalog.workers.each(lambda name: _listed(catalog, name), names)


def stored_codes(catalog: Catalog, dataset_id: str) -> list[str]:
    """Return the series of a dataset that have been consolidated, by code."""
    return sorted(folder_names(catalog.store, layout.windows(dataset_id)))


def _listed(catalog: Catalog, dataset_id: str) -> ListedDataset:
    try:
        head = catalog.log(dataset_id).head()
    except CaudalError as error:
        return ListedDataset(dataset_id, None, problem=str(error))
    if head is None:
        return ListedDataset(dataset_id, None, problem="no version yet: ingest its source again")
    series = sum(1 for _ in folder_names(catalog.store, layout.windows(dataset_id)))
    return ListedDataset(dataset_id, head, series)
