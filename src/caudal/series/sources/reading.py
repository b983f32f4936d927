"""Read a source in the format of its config, from a file, from the store or from an address."""

from io import BytesIO
from pathlib import Path

from caudal.errors import NotFoundError
from caudal.series.addresses import address_problem, is_address, told_address
from caudal.series.config import SeriesConfig, SourceFormat, SourceKind
from caudal.series.errors import SourceError
from caudal.series.sources.observations import NoObservationsError, SourceReading
from caudal.series.sources.textfile import read_csv
from caudal.series.sources.workbook import read_workbook
from caudal.store.port import Store


def read_source(config: SeriesConfig, source: Path | str, store: Store) -> SourceReading:
    """Read the observations in a local file, or in the object `source` of the store.

    Raises SourceError if it cannot be read, or contains no observation.
    """
    stored = config.source.kind is SourceKind.OBJECT
    data = _object(store, str(source)) if stored else _file(Path(source))
    return parse_source(config, str(source), data)


def parse_source(config: SeriesConfig, name: str, data: bytes) -> SourceReading:
    """Read the observations in the bytes of a source. `name` is for messages."""
    if config.source.format is SourceFormat.CSV:
        reading = read_csv(BytesIO(data), name, config)
    else:
        reading = read_workbook(data, name, config)
    if not reading.observations:
        raise NoObservationsError(name, reading.rejected)
    return reading


def require_source(config: SeriesConfig, source: str | None) -> str:
    """Return the source to ingest: the one that is given, or that of the config.

    Raises SourceError for a local file that cannot be read, and for something that is not of the
    kind of the config. Objects and addresses are checked later, when they are read.
    """
    kind = config.source.kind
    source = source or config.source.url
    if not source:
        raise SourceError(f"give FILE: the source to read (kind = {kind})")
    if kind is SourceKind.HTTP:
        if problem := address_problem(source):
            shown = told_address(source) if is_address(source) else source
            raise SourceError(f"{shown} {problem} (the config says kind = http)")
    elif is_address(source):
        raise SourceError(
            f"{told_address(source)} is an address, but the config says kind = {kind}: "
            'write kind = "http" in [source]'
        )
    elif kind is SourceKind.FILE:
        try:
            Path(source).open("rb").close()
        except OSError as error:
            raise _unreadable(source, error) from error
    return source


def _file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path | str, error: OSError) -> SourceError:
    return SourceError(f"cannot read {path}: {error.strerror or error}")


def _object(store: Store, key: str) -> bytes:
    try:
        return store.read(key)
    except NotFoundError as error:
        raise SourceError(
            f"the store has no object {key!r}: the config says kind = object"
        ) from error
