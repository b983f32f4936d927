"""Run options and progress reporting, the same for every engine."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol

from caudal.errors import UsageError
from caudal.model import RejectedRow

USUAL_BATCH_BYTES = 8 << 20


class Progress(Protocol):
    """Receiver of progress. All calls come from the thread that called `run`."""

    def table(self, name: str, done_bytes: int, total_bytes: int) -> None: ...

    def query(self, name: str, seconds: float) -> None: ...


class Silent:
    """Progress receiver that does nothing."""

    def table(self, name: str, done_bytes: int, total_bytes: int) -> None: ...

    def query(self, name: str, seconds: float) -> None: ...


class Engine(StrEnum):
    """The engine that executes queries."""

    EMBEDDED = "embedded"  # DuckDB over whole tables, in this process
    SPLIT = "split"  # scan, fold and finish over batches, as on a cluster, in this process
    SPARK = "spark"  # the same stages on Spark


IN_PROCESS = (Engine.EMBEDDED, Engine.SPLIT)  # the engines that need nothing but this process


class SparkInputs(StrEnum):
    """How executors get the records of files."""

    AUTO = "auto"  # shared, if executors see the same files; else sent
    SHARED = "shared"  # executors read ranges of the files
    SENT = "sent"  # the driver reads the files, and batches travel


@dataclass(frozen=True)
class SparkOptions:
    """Where and how the Spark engine runs: in `session`, or in a session of its own.

    >>> import caudal
    >>> caudal.SparkOptions(master="spark://host:7077", inputs="shared").ship
    False
    """

    session: Any = None  # a SparkSession, classic or Connect; it is left open
    remote: str | None = None  # sc://host:15002
    master: str | None = None  # local[2], spark://host:7077
    inputs: SparkInputs | Literal["auto", "shared", "sent"] = SparkInputs.AUTO
    ship: bool = False  # send this Caudal and its packages to executors

    def __post_init__(self) -> None:
        if self.inputs not in set(SparkInputs):
            known = ", ".join(SparkInputs)
            raise UsageError(f"inputs={self.inputs!r} is none of these: {known}")

    @classmethod
    def of(cls, given: Any) -> "SparkOptions":
        """Return these options, or those of a session, or of none."""
        return given if isinstance(given, cls) else cls(session=given)


@dataclass(frozen=True)
class RunOptions:
    """Options of a run that do not change which queries are answered."""

    sentiment: str | None = None  # None: the application's model
    memory_limit: int | None = None  # bytes for the process; data beyond it spills to disk
    batch_bytes: int | None = None  # larger: fewer, longer steps; None: as the engine has it
    threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    partitions: int = 4  # of the folds of the split engine
    hints: bool = True  # let the split engine drop rows early; changes no answer
    strict: bool = False  # fail on the first rejected row
    profile: bool = False  # measure every operator (runs queries one after the other)
    reject_sink: Callable[[RejectedRow], None] | None = None
    records: bool = False  # keep the raw records of the first rejected rows of each reason
    spark: SparkOptions = SparkOptions()
    kept_bindings: Path | None = None  # folder of bindings of earlier runs (embedded engine)

    @property
    def read_bytes(self) -> int:
        """Return how much of a file this process reads at once."""
        return self.batch_bytes or USUAL_BATCH_BYTES
