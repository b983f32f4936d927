"""The time and bytes of reading a table, for profiles and progress displays."""

import time
from collections.abc import Sequence

from caudal.files.inputs import InputFile
from caudal.files.pieces import Cleaned
from caudal.results.answers import TableProfile
from caudal.run_options import Progress


class ReadingProfile:
    """The profile of reading a table, reported to the progress display piece by piece."""

    def __init__(self, table: str, files: Sequence[InputFile], progress: Progress) -> None:
        self._table = table
        self._progress = progress
        self._began = time.perf_counter()
        self._sizes = {file.name: file.size for file in files}
        self._seen: dict[str, int] = {}  # file -> bytes read so far
        self._bytes = self._rows = self._rejected = 0

    def note(self, cleaned: Cleaned) -> None:
        self._seen[cleaned.piece.file] = cleaned.piece.position
        self._bytes += cleaned.piece.bytes
        self._rows += cleaned.accepted
        self._rejected += len(cleaned.rejected)
        self._progress.table(self._table, *self.progress)

    @property
    def progress(self) -> tuple[int, int]:
        """How many bytes of the files were read, of how many."""
        return sum(self._seen.values()), sum(self._sizes.values())

    def finished(self) -> TableProfile:
        total = sum(self._sizes.values())
        self._progress.table(self._table, total, total)
        seconds = time.perf_counter() - self._began
        return TableProfile(self._table, self._bytes, self._rows, self._rejected, seconds)
