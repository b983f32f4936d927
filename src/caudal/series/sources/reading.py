"""Read a source in the format of its config, from a file or from the store."""

from io import BytesIO
from pathlib import Path

from caudal.errors import NotFoundError
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
    name = str(source)
    stored = config.source.kind is SourceKind.OBJECT
    data = _object(store, name) if stored else _file(Path(source))
    if config.source.format is SourceFormat.CSV:
        reading = read_csv(BytesIO(data), name, config)
    else:
        reading = read_workbook(data, name, config)
    if not reading.observations:
        raise NoObservationsError(name, reading.rejected)
    return reading


def require_source(config: SeriesConfig, source: Path | str) -> None:
    """Raise SourceError for a local file that cannot be read.

    Objects in the store are checked later, when they are read.
    """
    if config.source.kind is SourceKind.FILE:
        try:
            Path(source).open("rb").close()
        except OSError as error:
            raise _unreadable(source, error) from error


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
