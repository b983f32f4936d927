"""Dirty files to observations: workbooks and CSV, every rejected cell reported."""

from caudal.series.sources.observations import Observation, RejectedCell, SourceReading
from caudal.series.sources.reading import read_source

__all__ = ["Observation", "RejectedCell", "SourceReading", "read_source"]
