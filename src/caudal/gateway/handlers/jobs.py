"""Jobs: create, list, status, cancel, delete."""

import logging
import math
from collections.abc import Mapping
from functools import partial

from starlette.responses import Response

from caudal.formats.job import Request
from caudal.formats.quotas import Quota
from caudal.formats.replies import Receipt
from caudal.gateway.bodies import json_body
from caudal.gateway.news import MOST_WAIT_SECONDS, await_news
from caudal.gateway.planner_process import PlanExcessError
from caudal.gateway.refusals import Refusal
from caudal.gateway.replies import json_answer, receipt_answer
from caudal.gateway.service import RequestCall, Service
from caudal.gateway.visits import visit_of
from caudal.jobs.derived_ids import check_whose
from caudal.jobs.requests import check_job_id
from caudal.process.logs import fields

_log = logging.getLogger(__name__)
_MOST_LISTED = 1000
_DIGITS = 9
_ONE_JOB = {Quota.JOBS: 1, Quota.KEPT: 1}


async def create(service: Service, call: RequestCall) -> Response:
    """PUT /jobs/{job}"""
    check_job_id(call.name("job"))
    check_whose(call.name("job"), call.owner)  # before quotas tell whether there is such a job
    async with json_body(service, call, Request) as request:
        place = await _place(service, call)
        with service.census.holding(call.owner, place) as hold:
            service.require_plannable(call.owner)
            async with service.plans.one(call.owner):
                receipt = await _created(service, call, request)
            if receipt.new:
                hold.lasts(_ONE_JOB)
    if receipt.new:
        _log.info("job created", extra=fields(job=call.name("job"), run=receipt.run))
    return receipt_answer(receipt)


async def _created(service: Service, call: RequestCall, request: Request) -> Receipt:
    try:
        return await service.planners.run(service.gateway.create, *call.job, request)
    except PlanExcessError:
        service.plan_waits.stopped(call.owner)
        raise


async def _place(service: Service, call: RequestCall) -> Mapping[Quota, int]:
    """Return what a new job takes of the owner's quotas: nothing if the job exists already."""
    refusal = service.lasting_refusal(call.owner, _ONE_JOB)
    if refusal is None:
        return _ONE_JOB
    if await service.threads.run(service.ports.job_runs.open, call.name("job")) is None:
        raise refusal
    return {}


async def listing(service: Service, call: RequestCall) -> Response:
    """GET /jobs"""
    asked = call.request.query_params
    owner = asked.get("owner", call.owner)
    if owner != call.owner and not call.caller.is_admin:
        raise Refusal(403, "not_allowed", "only a token with the right admin sees others' jobs")
    after, text = asked.get("after", ""), asked.get("limit", "100")
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(_MOST_LISTED))
    if not is_number or not 1 <= int(text) <= _MOST_LISTED:
        raise Refusal(400, "bad_request", f"limit must lie between 1 and {_MOST_LISTED}")
    page = await service.threads.run(service.gateway.jobs, owner, after, int(text))
    return json_answer(page)


async def status(service: Service, call: RequestCall) -> Response:
    """GET /jobs/{job}

    With `wait` and `results`, the answer waits for an outcome or another number of results. If too
    many wait already, it does not. Small results that come with it were fetched (audit.py).
    """
    asked = call.request.query_params
    quiet, small = (asked.get(one, "false") == "true" for one in ("quiet", "small"))
    if (seconds := _wait_seconds(asked.get("wait", "0"))) and not service.stopping():
        await await_news(service, call, _count(asked.get("results", "0")), seconds)
    ask = partial(service.gateway.status, *call.job, quiet=quiet, small=small)
    found = await service.threads.run(ask)
    if found.small:
        visit = visit_of(call.request.scope)
        visit.action, visit.query = "fetch", " ".join(sorted(found.small))
    return json_answer(found)


def _wait_seconds(text: str) -> float:
    """Return for how long a client wants to wait, bounded."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise Refusal(400, "bad_request", "wait must be a number of seconds")
    return min(seconds, MOST_WAIT_SECONDS)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > _DIGITS:
        raise Refusal(400, "bad_request", "results must be a number of results")
    return int(text)


async def cancel(service: Service, call: RequestCall) -> Response:
    """DELETE /jobs/{job}"""
    outcome = await service.threads.run(service.gateway.cancel, *call.job)
    _log.info("job cancelled", extra=fields(job=call.name("job"), reason=outcome.state))
    return json_answer(outcome)


async def delete(service: Service, call: RequestCall) -> Response:
    """DELETE /jobs/{job}/results"""
    outcome = await service.threads.run(service.gateway.delete, *call.job)
    _log.info("job deleted", extra=fields(job=call.name("job"), reason=outcome.state))
    return json_answer(outcome)
