"""The store of `caudal series`, opened as a command needs it."""

from caudal.errors import UsageError
from caudal.series import Catalog
from caudal.store import open_store, require_conditional_create
from caudal.store.open_store import folder_of


def open_catalog(store: str, *, makes: bool = False, changes: bool = False) -> Catalog:
    """The catalog of a store.

    Opening a folder makes it, so unless the command `makes` one, a mistyped folder is refused.
    Versions are safe only where a create never overwrites: before a command `changes` anything, a
    bucket must show that.
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
