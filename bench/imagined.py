"""A store that holds a job of any size without holding it: listings are computed from numbers.

One table `t`; its first `batches` batches have arrived, all but the tasks under test are mapped. It
counts what it is asked for.
"""

from collections import Counter
from pathlib import Path

from caudal.errors import NotFoundError
from caudal.formats import job as job_format
from caudal.formats.job import Job
from caudal.formats.keys import Keys, job_key
from caudal.jobs.intervals import IntervalSet
from caudal.store.port import PAGE, Entry, Page, Store


class ImaginedStore(Store):
    """Reads and listings of one job; creates are remembered."""

    def __init__(self, job: Job, batch: bytes, batches: int, unmapped: IntervalSet) -> None:
        self.keys = Keys(job.id, job.run)
        self.batches = batches
        self.unmapped = unmapped
        self.asked: Counter[str] = Counter()
        self._batch = batch
        self._made = {job_key(job.id): job_format.encode(job)}

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        self.asked["create"] += 1
        assert isinstance(data, bytes)
        self._made.setdefault(key, data)

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes:
        self.asked["read"] += 1
        whole = self._batch if "/batches/" in key else self._made.get(key)
        if whole is None:
            raise NotFoundError(key)
        return whole[offset:] if length is None else whole[offset : offset + length]

    def list(
        self, prefix: str, *, recursive: bool = True, after: str = "", limit: int = PAGE
    ) -> Page:
        self.asked["list"] += 1
        folder, name = prefix.rstrip("/").rpartition("/")[::2]
        if not name.isdigit():
            return Page(())
        first = int(name) * self.keys.group
        members = range(first, min(first + self.keys.group, self.batches))
        mapped = folder.endswith("mapped/t")
        return Page(
            tuple(
                Entry(f"{prefix}{number - first:03}", 1, "1")
                for number in members
                if not mapped or self._is_mapped(number)
            )
        )

    def _is_mapped(self, number: int) -> bool:
        return number not in self.unmapped or self.keys.mapped("t", number) in self._made

    def delete(self, key: str, *, lasting: bool = True) -> None:
        raise AssertionError(key)

    def replace(self, key: str, data: bytes | Path, *, twin: str | None = None) -> str:
        raise AssertionError(key)
