"""What a load did, as its callers see it."""

from dataclasses import dataclass

from caudal.datasets.sources import Skipped
from caudal.results.rejects import Rejects


@dataclass(frozen=True)
class LoadReport:
    """What a load did. `version` is None if there was nothing new."""

    newest: int  # version of the dataset afterwards
    version: int | None
    rows: int
    rejects: Rejects
    skipped: tuple[Skipped, ...]
    seconds: float
