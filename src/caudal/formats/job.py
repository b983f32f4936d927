"""job.json: everything about a job that was decided when it was created.

Workers execute only what stands here, so an application runs on machines that never saw its
folder, and an upgrade cannot mix plans. docs/formats/job.md.
"""

import msgspec

from caudal.formats import document
from caudal.formats.digest import digest
from caudal.formats.keys import GROUP
from caudal.model import Application, ParameterValue, Query, Table

KIND, FORMAT = "job", 1


class Text(msgspec.Struct, frozen=True):
    """An application as it travels: its folder's content without the folder."""

    name: str
    title: str
    tables: tuple[Table, ...]
    queries: tuple[Query, ...]
    parameters: dict[str, ParameterValue] = {}
    sentiment: str = "lexicon"

    @classmethod
    def of(cls, app: Application) -> "Text":
        return cls(
            app.name, app.title, app.tables, app.queries, dict(app.parameters), app.sentiment
        )


# Twice what an engine reads at a time: every batch that is sent costs requests, syncs and messages.
SENT_BATCH_BYTES = 16 << 20


class Options(msgspec.Struct, frozen=True):
    """How a job runs, as opposed to what it answers."""

    batch_bytes: int = SENT_BATCH_BYTES  # where the client cuts
    partitions: int = 16  # of folds
    group: int = GROUP  # batches per group
    silent_seconds: float = 600.0  # a client that is silent for so long has left
    keep_seconds: float = 86_400.0  # results stay for so long
    strict: bool = False  # the first rejected row fails the job
    every_reject: bool = False  # the rejects report names every row, not the first of each reason


class Request(msgspec.Struct, frozen=True):
    """What a client asks for."""

    application: Text
    queries: tuple[str, ...] = ()  # none: all of the application's
    parameters: dict[str, ParameterValue] = {}
    options: Options = Options()


class Job(msgspec.Struct, frozen=True):
    """One life of a job. `plan` is the engine's, in a format of its own."""

    id: str
    run: str  # random: the name of this life, under which all other objects lie
    owner: str
    created: float  # seconds since 1970, UTC
    request: Request
    request_digest: str
    tables: tuple[str, ...]  # those that the client must send, in order
    plan: msgspec.Raw
    versions: dict[str, str]  # of the hash and of Caudal
    behind: bool = False  # its owner had many jobs when it came: its tasks take the slow lane


def request_digest(request: Request) -> str:
    """Two requests with the same digest ask for the same."""
    return digest(msgspec.json.encode(request, order="deterministic"))


def raw(text: bytes) -> msgspec.Raw:
    """JSON that was written by somebody else and is kept as it is."""
    return msgspec.Raw(text)


def encode(job: Job) -> bytes:
    return document.encode(KIND, FORMAT, job)


def decode(data: bytes, key: str) -> Job:
    return document.decode(data, KIND, FORMAT, Job, key)
