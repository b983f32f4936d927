"""The version of a load: which files of its batches it adds. Pure decisions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from caudal.datasets import keys
from caudal.datasets.commits import next_version
from caudal.datasets.contents import Contents
from caudal.datasets.documents import (
    BatchDone,
    DatasetVersion,
    LoadedSource,
    StreamPart,
    TableChange,
)
from caudal.datasets.sources import Offered, still_new


@dataclass(frozen=True)
class Brought:
    """A load whose files are all written: its sources, and its batches by table, in order."""

    load: str
    sources: Sequence[tuple[Offered, StreamPart | None]]
    batches: Mapping[str, Sequence[BatchDone]]

    def version(self, contents: Contents, now: float) -> DatasetVersion | None:
        """Make the version of what no other version has brought; None if there is nothing."""
        is_new = still_new(contents, [offered for offered, _ in self.sources])
        if not any(is_new):
            return None
        kept = {
            table: [batch for batch in done if is_new[batch.source]]
            for table, done in self.batches.items()
        }
        loaded = tuple(
            _loaded(source, [batch for done in kept.values() for batch in done
                             if batch.source == place])
            for place, source in enumerate(self.sources)
            if is_new[place]
        )  # fmt: skip
        number, moment = next_version(contents, now)
        return DatasetVersion(number, moment, "load", self.load, loaded, _changes(kept))


def _loaded(
    source: tuple[Offered, StreamPart | None], batches: Sequence[BatchDone]
) -> LoadedSource:
    offered, part = source
    return LoadedSource(
        offered.table,
        offered.name,
        offered.bytes,
        offered.digest,
        sum(batch.rows for batch in batches),
        sum(batch.rejected for batch in batches),
        part,
    )


def _changes(batches: Mapping[str, Sequence[BatchDone]]) -> dict[str, tuple[TableChange, ...]]:
    added = {
        table: [batch.file for batch in done if batch.file is not None]
        for table, done in batches.items()
    }
    added[keys.REJECTS] = [
        batch.rejects for done in batches.values() for batch in done if batch.rejects is not None
    ]
    return {table: (TableChange(tuple(files)),) for table, files in added.items() if files}
