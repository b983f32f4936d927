"""Opening of the store of `caudal series`."""

from caudal.errors import UsageError
from caudal.series import Catalog
from caudal.store import open_store, require_conditional_create
from caudal.store.open_store import folder_of


def open_catalog(store: str, *, makes: bool = False, changes: bool = False) -> Catalog:
    """Open the catalog of a store.

    Opening a folder creates it. So without `makes`, raise UsageError if the folder does not exist:
    its name may be mistyped. Versions are safe only if a create never overwrites an object. So with
    `changes`, check first that a bucket guarantees this.
    """
    folder = folder_of(store)
    if folder is not None and not makes and not folder.exists():
        raise UsageError(
            f"no store at {folder}: give the folder that `caudal series ingest` filled"
        )
    opened = open_store(store)
    if changes and folder is None:
        require_conditional_create(opened)
    return Catalog(opened)
