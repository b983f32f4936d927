"""From dirty files to observations: workbooks and CSV. Every rejected cell is reported."""

from caudal.series.sources.observations import (
    NoObservationsError,
    Observation,
    RejectedCell,
    SourceReading,
)
from caudal.series.sources.reading import parse_source, read_source, require_source

__all__ = [
    "NoObservationsError",
    "Observation",
    "RejectedCell",
    "SourceReading",
    "parse_source",
    "read_source",
    "require_source",
]
