"""Reports progress and rejected rows of a run, from mapped objects in the order of batches.

The order does not depend on which task ended first. It is the order of the embedded engine. A
resumed run reports again from the beginning.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from caudal.errors import NotFoundError
from caudal.files.batches import CutNote
from caudal.files.inputs import InputFile
from caudal.formats import mapped
from caudal.jobs import objects
from caudal.jobs.runs import JobRun
from caudal.model import RejectedRow
from caudal.results.answers import TableProfile
from caudal.results.rejects import Rejects, strict_error
from caudal.run_options import Progress
from caudal.store.port import Store


@dataclass
class TableReport:
    """Reports one table, from the mapped objects of its batches in their order."""

    table: str
    files: Sequence[InputFile]
    rejects: Rejects
    progress: Progress
    strict: bool
    notes: list[CutNote] = field(default_factory=list)  # by batch: the result of cutting it
    done: int = 0  # batches
    _began: float = field(default_factory=time.perf_counter)
    _bytes: int = 0
    _rows: int = 0
    _rejected: int = 0
    _mapped_bytes: int = 0

    def __post_init__(self) -> None:
        self._total = sum(file.size for file in self.files)

    def profile(self) -> TableProfile:
        """Return the profile of the table. Call it at the end."""
        self.progress.table(self.table, self._total, self._total)
        seconds = time.perf_counter() - self._began
        return TableProfile(
            self.table, self._bytes, self._rows, self._rejected, seconds, self._mapped_bytes
        )

    def note(self, found: mapped.MappedReader) -> None:
        """Report the next batch."""
        index = found.index
        rejected = [
            RejectedRow(self.table, index.file, *one)
            for one in (found.rejects() if index.rejects.rows else ())
        ]
        if rejected and self.strict:
            raise strict_error(rejected[0])
        self.rejects.add(rejected, found.records() if self.rejects.keeps_records else {})
        self.rejects.note_repaired(self.table, index.repaired)
        self._bytes += index.source_bytes
        self._rows += index.rows
        self._rejected += sum(row.rows for row in rejected)
        slices = (span for stage in index.stages.values() for span in stage.slices)
        self._mapped_bytes += sum(span.length for span in slices)
        most = max(self._total - 1, 0)  # the whole is reported once, at the end
        self.progress.table(self.table, min(self.notes[self.done].reached, most), self._total)
        self.done += 1


@dataclass(frozen=True)
class TableFollower:
    """Follows one table in a store. `advance` may be called at any time."""

    store: Store
    job_run: JobRun
    report: TableReport

    def advance(self, sent: int) -> bool:
        """Report what is mapped of the first `sent` batches; return whether that is all of them."""
        keys, report = self.job_run.keys, self.report
        while report.done < sent:
            try:
                found = objects.mapped_reader(self.store, keys, report.table, report.done)
                report.note(found)
            except NotFoundError:
                return False
        return True
