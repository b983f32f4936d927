"""What can go wrong with a dataset of series, and the remedy."""

from caudal.errors import DataError, StoreError, UsageError


class ConfigError(UsageError):
    """A dataset's TOML file is wrong: mend what the message names."""


class SourceError(DataError):
    """A source file cannot be read at all (no such sheet, no such column, not a workbook)."""


class IngestError(StoreError):
    """Ingest stopped on an error before its commit: nothing was added; ingest the file again."""


class ConsolidationError(StoreError):
    """A month stopped half-way on an error: readers still see it whole; consolidate again."""


class LostFileError(StoreError):
    """A committed file is neither in its place nor in its attempt's `.tmp/`: rebuild the month."""


class TruncatedLogError(StoreError):
    """A month was built from versions that the event log no longer has: rebuild with `--force`."""
