"""A job service as one of its owners reaches it: the gateways of an uploader, without HTTP."""

from dataclasses import dataclass

from caudal.formats.job import Request
from caudal.formats.outcomes import End, Outcome
from caudal.formats.replies import JobStatus, Receipt
from caudal.jobs.service import JobService
from caudal.jobs.upload import News


@dataclass(frozen=True)
class OneOwner:
    """See jobs/upload.py: Gateways."""

    service: JobService
    owner: str = "me"

    def create(self, job_id: str, request: Request) -> Receipt:
        return self.service.create(job_id, self.owner, request)

    def put_batch(self, job_id: str, data: bytes, *, only: bool = False) -> Receipt:
        return self.service.put_batch(job_id, self.owner, data, only=only)

    def put_end(self, job_id: str, table: str, end: End) -> Receipt:
        return self.service.put_end(job_id, self.owner, table, end)

    def stored_digest(self, job_id: str, table: str, number: int) -> str | None:
        return self.service.stored_digest(job_id, self.owner, table, number)

    def status(self, job_id: str, news: News | None = None) -> JobStatus:
        return self.service.status(job_id, self.owner, small=news is not None)

    def result(self, job_id: str, query: str, run: str) -> bytes:
        return self.service.result(job_id, self.owner, query, run)

    def cancel(self, job_id: str) -> Outcome:
        return self.service.cancel(job_id, self.owner)
