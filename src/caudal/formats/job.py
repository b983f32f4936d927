"""job.json: everything about a job that was decided when it was created.

Workers execute only the content of this file. So they need no access to the application's folder,
and an upgrade cannot mix plans. See docs/formats/job.md.
"""

from dataclasses import replace

import msgspec

from caudal.formats import document
from caudal.formats.digest import digest
from caudal.formats.keys import GROUP
from caudal.formats.loads import JobLoad, LoadRequest, UpkeepRequest
from caudal.model import Application, ParameterValue, Query, Table

KIND, FORMAT = "job", 1


class Text(msgspec.Struct, frozen=True):
    """An application as data: the content of its folder."""

    name: str
    title: str
    tables: tuple[Table, ...]
    queries: tuple[Query, ...]
    parameters: dict[str, ParameterValue] = {}
    sentiment: str = "lexicon"

    @classmethod
    def of(cls, app: Application) -> "Text":
        """Return the application as a cluster needs it: files are read by the client."""
        tables = tuple(replace(table, reading=None) for table in app.tables)
        return cls(app.name, app.title, tables, app.queries, dict(app.parameters), app.sentiment)

    @classmethod
    def for_load(cls, app: Application) -> "Text":
        """Return what a load sends of an application: queries come with questions."""
        return cls.of(replace(app, queries=(), parameters={}))


# Twice the size that an engine reads at a time, because each batch costs requests, syncs, messages.
SENT_BATCH_BYTES = 16 << 20


class Options(msgspec.Struct, frozen=True):
    """Options about how a job runs. They do not change its answers."""

    batch_bytes: int = SENT_BATCH_BYTES  # size of the batches that the client cuts
    partitions: int = 16  # per fold
    group: int = GROUP  # batches per group
    silent_seconds: float = 600.0  # a client without requests for so long has left
    keep_seconds: float = 86_400.0  # how long results are kept
    strict: bool = False  # the first rejected row fails the job
    every_reject: bool = False  # the rejects report names every row, not the first of each reason


class AskedTable(msgspec.Struct, frozen=True):
    """A table of a dataset: its columns with DuckDB's types."""

    name: str
    columns: tuple[tuple[str, str], ...]


class AskedDataset(msgspec.Struct, frozen=True):
    """The version of a dataset that a job reads. Gateways fill it in, never clients."""

    name: str  # as the client wrote it
    root: str  # prefix of its objects in the store; ends with `/`
    version: int
    tables: tuple[AskedTable, ...]


class Request(msgspec.Struct, frozen=True):
    """The request of a client for a job."""

    application: Text
    queries: tuple[str, ...] = ()  # empty: all queries of the application
    parameters: dict[str, ParameterValue] = {}
    options: Options = Options()
    load: LoadRequest | msgspec.UnsetType = msgspec.UNSET  # load rows instead of answering queries
    upkeep: UpkeepRequest | msgspec.UnsetType = msgspec.UNSET  # or compact or vacuum a dataset
    dataset: AskedDataset | msgspec.UnsetType = msgspec.UNSET  # read this instead of sent tables


class Job(msgspec.Struct, frozen=True):
    """One run of a job. `plan` belongs to the engine and has its own format."""

    id: str
    run: str  # random name of this run; part of the keys of all its other objects
    owner: str
    created: float  # seconds since 1970, UTC
    request: Request
    request_digest: str
    tables: tuple[str, ...]  # the tables that the client must send, in order
    plan: msgspec.Raw
    versions: dict[str, str]  # of everything that decides the bytes of outputs (jobs/versions.py)
    load: JobLoad | msgspec.UnsetType = msgspec.UNSET  # where its rows go
    behind: bool = False  # its tasks use the slow lane, because its owner already had many jobs


def request_digest(request: Request) -> str:
    """Return the digest of a request. Equal requests have equal digests."""
    return digest(msgspec.json.encode(request, order="deterministic"))


def raw(text: bytes) -> msgspec.Raw:
    """Wrap JSON text that is stored unchanged."""
    return msgspec.Raw(text)


def encode(job: Job) -> bytes:
    return document.encode(KIND, FORMAT, job)


def decode(data: bytes, key: str) -> Job:
    return document.decode(data, KIND, FORMAT, Job, key)
