"""What is remembered of an HTTP address, so that an unchanged source is not read again.

Rules

1. An ETag is remembered only after everything that came with it is in the log.
2. It is used only if nothing changed since: the same config, the same release of Caudal, and no
   version of the dataset since then. So nothing is skipped that an ingest of the whole source
   would add, such as values that another source has replaced meanwhile.
3. What is remembered is not needed. If it is lost or damaged, the source is fetched again.
"""

import contextlib

import msgspec

from caudal.decoding import decode_json
from caudal.errors import NotFoundError, StoreError
from caudal.formats.digest import digest
from caudal.series import layout
from caudal.series.catalog import Catalog
from caudal.series.config import SeriesConfig
from caudal.series.manifest import VersionManifest
from caudal.version import __version__


class RememberedSource(msgspec.Struct, frozen=True):
    """The ETag of what the log has of an address: read with which config, at which version."""

    etag: str
    config: str
    version: int
    attempt: str


def known_etag(catalog: Catalog, config: SeriesConfig, address: str) -> str:
    """Return the ETag of what the log has of an address, or an empty string."""
    head = catalog.log(config.dataset_id).head()
    if head is None:
        return ""
    try:
        data = catalog.store.read(layout.remembered_source(config.dataset_id, _digest_of(address)))
        found = decode_json(data, RememberedSource)
    except (NotFoundError, msgspec.MsgspecError):
        return ""
    return found.etag if found == _remembered(config, found.etag, head) else ""


def remember(
    catalog: Catalog, config: SeriesConfig, address: str, etag: str, head: VersionManifest
) -> None:
    """Remember that the log has, at a version, what an address gave with this ETag."""
    key = layout.remembered_source(config.dataset_id, _digest_of(address))
    with contextlib.suppress(StoreError):
        catalog.store.replace(key, msgspec.json.encode(_remembered(config, etag, head)))


def _digest_of(address: str) -> str:
    return digest(address.encode())


def _remembered(config: SeriesConfig, etag: str, head: VersionManifest) -> RememberedSource:
    described = digest(msgspec.json.encode([config, __version__]))
    return RememberedSource(etag, described, head.version, head.attempt)
