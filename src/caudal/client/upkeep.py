"""Compact or vacuum a dataset of a cluster: a job without rows, which a worker does."""

from dataclasses import dataclass

from caudal.client import upload_threads
from caudal.client.http import HttpGateways
from caudal.client.results import error_of_outcome, result_of
from caudal.client.stalled import Noticing
from caudal.formats.job import Request, Text
from caudal.formats.loads import UPKEEP, UpkeepRequest
from caudal.jobs.upload import UploadRequest
from caudal.process.clock import new_id


@dataclass(frozen=True)
class UpkeepReport:
    """What was done: the newest version, files before and after, and what a vacuum deleted."""

    version: int
    before: int
    after: int
    deleted: int
    bytes: int


def take_care(request: UpkeepRequest, gateways: HttpGateways) -> UpkeepReport:
    """Have a dataset compacted or vacuumed; wait for it."""
    job_id, text = new_id(), Text(request.dataset, "", (), ())
    gateways.begin_at(job_id)
    order = UploadRequest(job_id, Request(text, upkeep=request), {})
    with upload_threads.opened(gateways, order, Noticing(gateways.tell)) as errand:
        outcome = upload_threads.carry_out(errand, gateways)
    if outcome.state != "done":
        raise error_of_outcome(job_id, outcome)
    (row,) = result_of(UPKEEP, errand.results[UPKEEP]).rows()
    return UpkeepReport(**row)
