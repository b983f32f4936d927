"""The errors of series datasets, and their remedies."""

from caudal.errors import DataError, StoreError, UsageError


class ConfigError(UsageError):
    """The TOML file of a dataset is wrong. Fix what the message names."""


class ChangedConfigError(UsageError):
    """A dataset was started with something that its TOML file now says differently."""


class SourceError(DataError):
    """A source file cannot be read at all (no such sheet, no such column, not a workbook)."""


class IngestError(StoreError):
    """Ingest stopped on an error before its commit. Nothing was added; ingest the file again."""


class ConsolidationError(StoreError):
    """Consolidation of a month stopped on an error.

    Readers see complete data; consolidate again.
    """


class LostFileError(StoreError):
    """A committed file is neither in its place nor in `.tmp/` of its attempt.

    Rebuild the month.
    """


class TruncatedLogError(StoreError):
    """The event log has lost versions that a month was built from. Rebuild with `--force`."""
