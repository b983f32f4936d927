"""The requests of a client as HTTP (docs/formats/http.md), to whichever gateway answers."""

from collections.abc import Iterator, Mapping
from typing import TypeVar
from urllib.parse import quote

import httpx
import msgspec

from caudal.client.failover import RESULT_TYPE, Failover
from caudal.client.refusals import code_of, error_of
from caudal.errors import FormatError
from caudal.formats import batch as batch_format
from caudal.formats import frame
from caudal.formats.ending import End, Outcome
from caudal.formats.job import Request
from caudal.formats.replies import JobEntry, JobPage, Receipt, Status
from caudal.tasks.requests import check_job_id

_BATCH_TYPE = "application/vnd.caudal.batch"
_JSON = {"Content-Type": "application/json"}
Kind = TypeVar("Kind")


class _Digest(msgspec.Struct):
    digest: str


class HttpGateways(Failover):
    """See `tasks.client.Gateways`. The owner of a job is whoever holds the token."""

    def create(self, job_id: str, owner: str, request: Request) -> Receipt:
        """See the port."""
        del owner
        body = msgspec.json.encode(request)
        return self._get(Receipt, "PUT", _path(job_id), body, _JSON)

    def put_batch(self, job_id: str, owner: str, data: bytes) -> Receipt:
        """See the port."""
        del owner
        index = batch_format.describe(frame.of_bytes(data), "the batch")
        path = _path(job_id, "tables", index.table, "batches", str(index.number))
        return self._get(Receipt, "PUT", path, data, {"Content-Type": _BATCH_TYPE})

    def put_end(self, job_id: str, owner: str, table: str, end: End) -> Receipt:
        """See the port."""
        del owner
        path = _path(job_id, "tables", table, "end")
        return self._get(Receipt, "PUT", path, msgspec.json.encode(end), _JSON)

    def stored_digest(self, job_id: str, owner: str, table: str, number: int) -> str | None:
        """See the port."""
        del owner
        path = _path(job_id, "tables", table, "batches", str(number))
        address, answer = self.ask("GET", path)
        if answer.status_code == 404 and code_of(answer.content) == "no_batch":
            return None
        return _decoded(_Digest, address, answer).digest

    def status(self, job_id: str, owner: str) -> Status:
        """See the port."""
        del owner
        return self._get(Status, "GET", _path(job_id))

    def result(self, job_id: str, owner: str, query: str) -> bytes:
        """See the port."""
        del owner
        headers = {"Accept": RESULT_TYPE}
        address, answer = self.ask("GET", _path(job_id, "results", query), headers=headers)
        if not answer.is_success:
            raise error_of(address, answer.status_code, answer.content)
        return answer.content

    def cancel(self, job_id: str, owner: str) -> Outcome:
        """See the port."""
        del owner
        return self._get(Outcome, "DELETE", _path(job_id))

    def jobs(self) -> Iterator[JobEntry]:
        """The jobs of this token, page by page."""
        after = ""
        while True:
            page = self._get(JobPage, "GET", "/jobs" + (f"?after={quote(after)}" if after else ""))
            yield from page.jobs
            if page.next is None:
                return
            after = page.next

    def _get(
        self,
        kind: type[Kind],
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Kind:
        address, answer = self.ask(method, path, body, headers)
        return _decoded(kind, address, answer)


def _decoded(kind: type[Kind], address: str, answer: httpx.Response) -> Kind:
    if not answer.is_success:
        raise error_of(address, answer.status_code, answer.content)
    try:
        return msgspec.json.decode(answer.content, type=kind)
    except msgspec.MsgspecError as error:
        raise FormatError(f"{address} answered in a form that this Caudal lacks: {error}") from None


def _path(job_id: str, *parts: str) -> str:
    check_job_id(job_id)
    return "/jobs/" + "/".join(quote(part, safe="") for part in (job_id, *parts))
