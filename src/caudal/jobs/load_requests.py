"""Decides what is to be loaded, before a job of it is created and when it is.

A client first offers its sources. The answer names those that are new and the id of the job that
loads them. The id is derived from the dataset, the sources and the options. So a client that was
killed, and runs again with the same command, finds its job. Only the owner of the dataset may
create a job under it (derived_ids.py).
"""

import re
from contextlib import suppress
from uuid import uuid4

import msgspec

from caudal.datasets.cluster_place import (
    ClusterDataset,
    DatasetNotFoundError,
    check_dataset_name,
    locate,
)
from caudal.datasets.commits import find_head, settle
from caudal.datasets.contents import Contents, first_contents, last_vacuum
from caudal.datasets.documents import DatasetHead, DatasetVersion
from caudal.datasets.shelf import require_same
from caudal.datasets.sources import load_id, sort_sources
from caudal.datasets.tables import cleaning_digests
from caudal.errors import FormatError, NotFoundError, UsageError
from caudal.formats.digest import digest
from caudal.formats.job import Request
from caudal.formats.keys import Keys
from caudal.formats.loads import (
    JobLoad,
    LoadOffer,
    LoadRequest,
    LoadSkip,
    LoadSource,
    UpkeepRequest,
)
from caudal.jobs import objects
from caudal.jobs.derived_ids import derived_id
from caudal.jobs.loads import OPTION, offered
from caudal.jobs.plan import from_json
from caudal.jobs.requests import identity
from caudal.store.port import Store

MOST_SOURCES = 10_000
_MOST_NAME = 4_096  # characters
_MOST_HEAD = 4_096  # bytes of a stream's part
_LEAST_FILE, _MOST_FILE = 1 << 10, 256 << 20  # bytes: a worker holds the rows of a merged file
_DIGEST = re.compile(r"[0-9a-f]{32}\Z")


def check_load(request: Request) -> None:
    """Check the parts of a request that concern a dataset."""
    if request.upkeep:
        _check_upkeep(request.upkeep)
        if request.load or request.application.tables or request.application.queries:
            raise UsageError("the upkeep of a dataset needs no application and loads nothing")
    if request.load:
        _check_sources(request, request.load)


def offer_load(store: Store, owner: str, request: Request) -> LoadOffer:
    """Decide which of the offered sources are new. Raise UsageError for one that has changed."""
    if not request.load:
        raise UsageError("an offer must say what is to be loaded")
    load = request.load
    place = locate(store, owner, load.dataset)
    contents = _contents(place, request)
    found = sort_sources(contents, map(offered, load.sources), again=load.again)
    if found.skipped and contents.head.id:
        settle(place.below, contents)
    wanted = {one.identity for one in found.new}
    new = []
    for number, source in enumerate(load.sources):
        if (source.table, source.digest) in wanted:
            wanted.discard((source.table, source.digest))
            new.append(number)
    by_name = {(one.table, one.name): one for one in load.sources}
    skipped = tuple(
        LoadSkip(by_name[one.source.table, one.source.name], one.reason) for one in found.skipped
    )
    chosen = msgspec.structs.replace(load, sources=tuple(load.sources[one] for one in new))
    made = msgspec.structs.replace(request, load=chosen)
    text = msgspec.json.encode([place.root, last_vacuum(contents), identity(made)])
    is_there = contents.head.id != ""
    version = contents.number if is_there else None
    return LoadOffer(_job_id(store, owner, text), tuple(new), skipped, version)


def place_of(
    store: Store, owner: str, request: Request, plan: bytes
) -> JobLoad | msgspec.UnsetType:
    """Return where a new job writes rows; UNSET if it writes none."""
    if request.upkeep:
        found = locate(store, owner, request.upkeep.dataset)
        if not found.exists():
            raise DatasetNotFoundError(f"there is no dataset {request.upkeep.dataset} of yours")
        return JobLoad(found.root, "", 0, "")
    if not request.load:
        return msgspec.UNSET
    found = locate(store, owner, request.load.dataset)
    contents = _contents(found, request)
    tables = from_json(plan).load
    load = load_id(
        contents,
        list(map(offered, request.load.sources)),
        request.options.batch_bytes,
        tables.made_by if tables else "",
    )
    return JobLoad(found.root, load, contents.number, str(uuid4()))


def _job_id(store: Store, owner: str, content: bytes) -> str:
    """Return the id of the job of a load.

    Ids of the previous version name no owner. A load that it began goes on under its id.
    """
    earlier = f"load-{digest(content)}"
    with suppress(NotFoundError, FormatError):
        job = objects.job_of(objects.job_bytes(store, earlier), earlier)
        if job.owner == owner and not objects.exists(store, Keys(job.id, job.run).outcome):
            return earlier
    return derived_id("load", owner, content)


def _contents(place: ClusterDataset, request: Request) -> Contents:
    """Return the newest contents; those of a dataset without rows if it is not made yet."""
    app, head = request.application, find_head(place.below)
    if head is not None:
        cleanings = cleaning_digests(app.tables, app.sentiment)
        require_same(place.name, head, app.name, cleanings, OPTION)
    try:
        return place.contents()
    except NotFoundError:
        nothing = DatasetHead("", app.name, 0, ())
        return first_contents(DatasetVersion(0, 0, "create", head=nothing))


def _check_upkeep(upkeep: UpkeepRequest) -> None:
    check_dataset_name(upkeep.dataset)
    size, times = upkeep.compact_bytes, (upkeep.keep_seconds or 0.0, upkeep.grace_seconds)
    if size is not None and not _LEAST_FILE <= size <= _MOST_FILE:
        raise UsageError(
            f"files of {size:,} bytes cannot be made: choose from {_LEAST_FILE:,} to {_MOST_FILE:,}"
        )
    if min(times) < 0.0:
        raise UsageError("times to keep and to spare cannot be negative")


def _check_sources(request: Request, load: LoadRequest) -> None:
    check_dataset_name(load.dataset)
    if request.queries or request.upkeep:
        raise UsageError("a load answers no queries")
    if not 1 <= len(load.sources) <= MOST_SOURCES:
        raise UsageError(f"a load has 1 to {MOST_SOURCES} sources, not {len(load.sources)}")
    tables = {table.name for table in request.application.tables}
    for source in load.sources:
        _check_source(source, tables)


def _check_source(source: LoadSource, tables: set[str]) -> None:
    names = source.name, source.shown
    if source.table not in tables:
        raise UsageError(f"the application has no table {source.table[:70]!r}")
    digests = [source.digest, *([source.content] if source.content else [])]
    if not all(map(_DIGEST.match, digests)) or any(len(one) > _MOST_NAME for one in names):
        raise UsageError(f"a source of table {source.table} has no digest, or a very long name")
    part = source.part
    if part and (part.offset < 0 or len(part.head) > _MOST_HEAD or not _DIGEST.match(part.before)):
        raise UsageError(f"a part of a stream of table {source.table} cannot be one")
