"""Time series in a store: an event log, and monthly projections with atomic updates."""

from caudal.series.catalog import Catalog
from caudal.series.config import SeriesConfig, find_config, load_config, shipped_configs
from caudal.series.consolidation import MonthOutcome, MonthResult, consolidate_month
from caudal.series.ingesting import IngestOutcome, ingest
from caudal.series.layout import Month
from caudal.series.listing import ListedDataset, list_datasets, stored_codes
from caudal.series.manifest import (
    ConsolidationManifest,
    ManifestStatus,
    ProjectionFile,
    VersionManifest,
)
from caudal.series.reading import MonthRead, SeriesRead, read_month, read_series, read_stored
from caudal.series.upkeep import (
    Consolidated,
    Freshness,
    MonthStatus,
    consolidate_all,
    consolidate_each,
    survey,
)
from caudal.series.vacuum import SeriesVacuumReport, vacuum_series

__all__ = [
    "Catalog",
    "Consolidated",
    "ConsolidationManifest",
    "Freshness",
    "IngestOutcome",
    "ListedDataset",
    "ManifestStatus",
    "Month",
    "MonthOutcome",
    "MonthRead",
    "MonthResult",
    "MonthStatus",
    "ProjectionFile",
    "SeriesConfig",
    "SeriesRead",
    "SeriesVacuumReport",
    "VersionManifest",
    "consolidate_all",
    "consolidate_each",
    "consolidate_month",
    "find_config",
    "ingest",
    "list_datasets",
    "load_config",
    "read_month",
    "read_series",
    "read_stored",
    "shipped_configs",
    "stored_codes",
    "survey",
    "vacuum_series",
]
