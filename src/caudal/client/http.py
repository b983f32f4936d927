"""The client's requests as HTTP (docs/formats/http.md), to any gateway that answers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import httpx
import msgspec

from caudal.client.bodies import Take, check_result, take_reply, take_result
from caudal.client.failover import RESULT_TYPE, Failover
from caudal.client.refusals import code_of
from caudal.datasets.cluster_place import split_place
from caudal.decoding import decode_json
from caudal.errors import FormatError
from caudal.formats import batch as batch_format
from caudal.formats import frame
from caudal.formats.dataset_replies import (
    DatasetEntry,
    DatasetPage,
    PartPage,
    VersionEntry,
    VersionPage,
)
from caudal.formats.job import Request
from caudal.formats.loads import LoadOffer
from caudal.formats.outcomes import End, Outcome
from caudal.formats.outputs import Whose
from caudal.formats.replies import (
    AskReceipt,
    JobEntry,
    JobPage,
    JobStatus,
    PlanPage,
    Question,
    QuotaPage,
    Receipt,
    ResultAbout,
    SamplePage,
    SoFar,
    TaskPage,
)
from caudal.formats.task_facts import ProcessSample, TaskFact
from caudal.jobs.interfaces import ConflictError
from caudal.jobs.requests import check_job_id, is_name
from caudal.jobs.upload import News

_BATCH_TYPE = "application/vnd.caudal.batch"
_JSON = {"Content-Type": "application/json"}
_MOST_LISTED = 1000  # most jobs that a gateway returns in one page
Kind = TypeVar("Kind")


class _Digest(msgspec.Struct):
    digest: str


class HttpGateways(Failover):
    """The `Gateways` port over HTTP. The owner of a job is the owner of the token."""

    def create(self, job_id: str, request: Request) -> Receipt:
        """See the port."""
        body = msgspec.json.encode(request)
        return self._get(Receipt, "PUT", _path(job_id), body, _JSON)

    def ask_dataset(self, dataset: str, question: Question) -> AskReceipt:
        """Ask a dataset: NAME, or OWNER/NAME of another owner. Return the job that answers."""
        body = msgspec.json.encode(question)
        return self._get(AskReceipt, "POST", dataset_path(dataset, "jobs"), body, _JSON)

    def put_batch(self, job_id: str, data: bytes, *, only: bool = False) -> Receipt:
        """See the port. A gateway of an earlier version ignores `only`."""
        index = batch_format.describe(frame.of_bytes(data), "the batch")
        path = _path(job_id, "tables", index.table, "batches", str(index.number))
        path += "?only=true" if only else ""
        return self._get(Receipt, "PUT", path, data, {"Content-Type": _BATCH_TYPE})

    def put_end(self, job_id: str, table: str, end: End) -> Receipt:
        """See the port."""
        path = _path(job_id, "tables", table, "end")
        return self._get(Receipt, "PUT", path, msgspec.json.encode(end), _JSON)

    def stored_digest(self, job_id: str, table: str, number: int) -> str | None:
        """See the port."""
        path = _path(job_id, "tables", table, "batches", str(number))
        answer = self.ask("GET", path, take=_take(_Digest))
        if answer.status == 404 and code_of(answer.body) == "no_batch":
            return None
        if not answer.is_success:
            raise answer.error()
        return _read(_Digest, answer.body).digest

    def status(self, job_id: str, news: News | None = None) -> JobStatus:
        """See the port. A gateway of an earlier version answers at once, or without results. One
        that sends what is no result of the job is not believed: the next gateway is asked."""
        asked = f"?wait={news.seconds:g}&results={news.results}&small=true" if news else ""
        return self._get(JobStatus, "GET", _path(job_id) + asked, take=_take_status(job_id))

    def result(self, job_id: str, query: str, run: str) -> bytes:
        """See the port. What is no such result is asked of another gateway."""
        answer = self.ask(
            "GET",
            _path(job_id, "results", query),
            headers={"Accept": RESULT_TYPE},
            take=take_result(Whose(job_id, run, query)),
        )
        if not answer.is_success:
            raise answer.error()
        return answer.body

    def cancel(self, job_id: str) -> Outcome:
        """See the port."""
        return self._get(Outcome, "DELETE", _path(job_id))

    def delete(self, job_id: str) -> Outcome:
        """Delete all stored data of a job that has ended; return how it ended.

        After a lost answer, a job that was made anew under this id is left as it is
        (ConflictError), unless it is made, and ends, between the look at it and the request.
        """
        before = self.status(job_id)

        def require_same() -> None:
            now = self._if_there(JobStatus, _path(job_id), "no_job")
            if now is not None and now.run != before.run:
                raise _made_anew(f"job {job_id}")

        path = _path(job_id, "results")
        return self._delete(Outcome, path, "no_job", before.outcome, require_same)

    def jobs(self) -> Iterator[JobEntry]:
        """Yield the jobs of this token, fetched page by page."""
        after = ""
        while True:
            behind = f"&after={quote(after)}" if after else ""
            page = self._get(JobPage, "GET", f"/jobs?limit={_MOST_LISTED}{behind}")
            yield from page.jobs
            if page.next is None:
                return
            if page.next <= after:
                raise FormatError(
                    f"the list of jobs is not in order: {page.next!r} after {after!r}"
                )
            after = page.next

    def quotas(self) -> QuotaPage:
        """Return the usage of this token's owner; of all owners for an admin."""
        return self._get(QuotaPage, "GET", "/quotas")

    def plans(self, job_id: str) -> PlanPage:
        """Return the plans of all queries of a job."""
        return self._get(PlanPage, "GET", _path(job_id, "plan"))

    def tasks(self, job_id: str) -> Iterator[TaskFact]:
        """Yield what workers did for a job, as far as it is known."""
        after, more = "", True
        while more:
            page = self._get(TaskPage, "GET", f"{_path(job_id, 'tasks')}?after={quote(after)}")
            yield from page.tasks
            more = page.more and page.last > after
            after = page.last

    def about(self, job_id: str, query: str) -> ResultAbout:
        """Return what a result holds, without its rows."""
        return self._get(ResultAbout, "GET", _path(job_id, "results", query, "about"))

    def first_rows(self, job_id: str, query: str | None, limit: int) -> list[dict[str, Any]]:
        """Return the first rows of a result as JSON values; of the rejects report without query."""
        path = _path(job_id, *(("results", query) if query else ("rejects",)))
        kind, accept = list[dict[str, Any]], {"Accept": "application/json"}
        return self._get(kind, "GET", f"{path}?offset=0&limit={limit}", headers=accept)

    def so_far(self, job_id: str, query: str, after: int) -> SoFar:
        """Return rows of an answer that still grows, as a stream; without it if they are not of
        more batches than `after`."""
        path = _path(job_id, "results", query, "so-far")
        return self._get(SoFar, "GET", f"{path}?form=stream&after={after}")

    def samples(self) -> tuple[ProcessSample, ...]:
        """Return how the processes were in the last hour, as far as it is known."""
        return self._get(SamplePage, "GET", "/cluster/history?seconds=3600").samples

    def offer(self, dataset: str, request: Request) -> LoadOffer:
        """Offer the sources of a load; return which are new, and the job to create."""
        body = msgspec.json.encode(request)
        return self._get(LoadOffer, "POST", dataset_path(dataset, "offers"), body, _JSON)

    def datasets(self) -> DatasetPage:
        """Return the datasets that this token's owner may read."""
        return self._get(DatasetPage, "GET", "/datasets")

    def dataset(self, place: str) -> DatasetEntry:
        """Return a dataset at its newest version: NAME, or OWNER/NAME of another owner."""
        return self._get(DatasetEntry, "GET", dataset_path(place))

    def versions(self, place: str, last: int) -> VersionPage:
        """Return the newest versions of a dataset."""
        return self._get(VersionPage, "GET", dataset_path(place, "versions", last=str(last)))

    def parts(self, dataset: str, table: str) -> PartPage:
        """Return the parts of streams that were loaded into a table."""
        return self._get(PartPage, "GET", dataset_path(dataset, "parts", table))

    def share(self, dataset: str, reader: str, *, shared: bool) -> DatasetEntry:
        """Let another owner read a dataset, or read it no more."""
        path = dataset_path(dataset, "readers", reader)
        return self._get(DatasetEntry, "PUT" if shared else "DELETE", path)

    def delete_dataset(self, place: str) -> DatasetEntry:
        """Delete a dataset; return what it was.

        After a lost answer, a dataset that was made anew under this name is left as it is
        (ConflictError), unless it is made between the look at it and the request.
        """
        before, known = self.dataset(place), self.versions(place, 1).versions
        path = dataset_path(place, "versions", last=str(_MOST_LISTED))

        def require_same() -> None:
            now = self._if_there(VersionPage, path, "no_dataset")
            if now is not None and known and _is_another(now.versions, known[-1]):
                raise _made_anew(f"dataset {place}")

        return self._delete(DatasetEntry, dataset_path(place), "no_dataset", before, require_same)

    def _delete(
        self,
        kind: type[Kind],
        path: str,
        gone: str,
        before: Kind | None,
        require_same: Callable[[], None],
    ) -> Kind:
        """Delete what was there a moment ago; if it is gone by now, return what it was.

        A gateway may delete it and die before it answers. The next gateway then finds nothing, or
        something else: `require_same` raises an error.
        """
        answer = self.ask("DELETE", path, take=_take(kind), before_again=require_same)
        if before is not None and answer.status == 404 and code_of(answer.body) == gone:
            return before
        if not answer.is_success:
            raise answer.error()
        return _read(kind, answer.body)

    def _if_there(self, kind: type[Kind], path: str, gone: str) -> Kind | None:
        answer = self.ask("GET", path, take=_take(kind))
        if answer.status == 404 and code_of(answer.body) == gone:
            return None
        if not answer.is_success:
            raise answer.error()
        return _read(kind, answer.body)

    def _get(
        self,
        kind: type[Kind],
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        take: Take | None = None,
    ) -> Kind:
        answer = self.ask(method, path, body, headers, take or _take(kind))
        if not answer.is_success:
            raise answer.error()
        return _read(kind, answer.body)


def _is_another(now: Sequence[VersionEntry], known: VersionEntry) -> bool:
    """Return whether a dataset with these newest versions is not the one that had the known one."""
    for one in now:
        if one.number == known.number:
            return (one.time, one.load) != (known.time, known.load)
    return all(one.number < known.number for one in now)


def _made_anew(what: str) -> ConflictError:
    return ConflictError(
        f"{what} was deleted, and made anew before a gateway's answer came: the new one is left as "
        "it is"
    )


def _read(kind: type[Kind], body: bytes) -> Kind:
    try:
        found = decode_json(body, kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise FormatError(f"sent an answer of unknown form: {error}") from None
    if isinstance(found, JobStatus):
        _check_names(found)
    return found


def _take(kind: type[Kind]) -> Take:
    """Return a reader that refuses a reply of another kind, so that another gateway is asked."""

    def take(answer: httpx.Response) -> bytes:
        body = take_reply(answer)
        _read(kind, body)
        return body

    return take


def _take_status(job_id: str) -> Take:
    """Return a reader of a status that also refuses it if a result in it is none of its run."""

    def take(answer: httpx.Response) -> bytes:
        body = take_reply(answer)
        status = _read(JobStatus, body)
        for query, result in status.small.items():
            check_result(result, Whose(job_id, status.run, query))
        return body

    return take


def _check_names(status: JobStatus) -> None:
    """Check the names of queries: they become file names, and each must have its tables."""
    for name in (
        *status.queries,
        *status.results,
        *status.previews,
        *status.growing,
        *status.failed,
        *status.small,
    ):
        if not is_name(name) or name not in status.reads:
            raise FormatError(f"names a query {name[:40]!r}, which is invalid")
    for name in status.previews:
        if not status.reads[name]:
            raise FormatError(f"offers a preview of {name}, which reads no table")


def dataset_path(place: str, *parts: str, **asked: str) -> str:
    """Return the path of a dataset: NAME, or OWNER/NAME."""
    owner, name = split_place("", place)
    asked = {**({"owner": owner} if owner else {}), **asked}
    path = "/datasets/" + "/".join(quote(part, safe="") for part in (name, *parts))
    return f"{path}?{urlencode(asked)}" if asked else path


def _path(job_id: str, *parts: str) -> str:
    check_job_id(job_id)
    return "/jobs/" + "/".join(quote(part, safe="") for part in (job_id, *parts))
