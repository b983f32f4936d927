"""Questions to datasets, and the stream of their versions."""

from collections.abc import Mapping

from starlette.responses import Response

from caudal.datasets.cluster_place import split_place
from caudal.formats.quotas import Quota
from caudal.formats.replies import AskReceipt, Question
from caudal.gateway import events
from caudal.gateway.bodies import json_body
from caudal.gateway.handlers.streams import event_stream, last_event
from caudal.gateway.planner_process import PlanExcessError
from caudal.gateway.replies import AskBody, json_answer
from caudal.gateway.service import RequestCall, Service
from caudal.gateway.visits import visit_of
from caudal.jobs.answered import lacks_answers
from caudal.jobs.asking import PlacedQuestion

_ONE_JOB = {Quota.JOBS: 1, Quota.KEPT: 1}
_ANEW = {Quota.JOBS: 1}  # it takes the place of an ended one
_NOTHING: Mapping[Quota, int] = {}


async def ask(service: Service, call: RequestCall) -> Response:
    """POST /datasets/{dataset}/jobs"""
    async with json_body(service, call, Question) as question:
        name = dataset_name(call)
        placed = await service.threads.run(service.questions.place, call.owner, name, question)
        visit_of(call.request.scope).job = placed.job_id
        amounts, begun = await service.threads.run(_amounts, service, placed.job_id)
        if (refusal := service.lasting_refusal(call.owner, amounts)) is not None:
            raise refusal
        with service.census.holding(call.owner, amounts) as hold:
            receipt = await _asked(service, call, placed)
            if receipt.new:
                hold.lasts(begun)
    body = AskBody(receipt.job, receipt.run, receipt.version, receipt.tables)
    return json_answer(body, 201 if receipt.new else 200)


def _amounts(service: Service, job_id: str) -> tuple[Mapping[Quota, int], Mapping[Quota, int]]:
    """Return what a question takes of the owner's quotas, and what it takes if a job begins.

    Nothing if its job runs or has all answers; but that may change until it is asked.
    """
    known = service.ports.job_runs.open(job_id)
    if known is None:
        return _ONE_JOB, _ONE_JOB
    return _ANEW if lacks_answers(service.ports.store, known) else _NOTHING, _ANEW


async def _asked(service: Service, call: RequestCall, placed: PlacedQuestion) -> AskReceipt:
    service.require_plannable(call.owner)
    async with service.plans.one(call.owner):
        try:
            return await service.planners.run(service.questions.ask, call.owner, placed)
        except PlanExcessError:
            service.plan_waits.stopped(call.owner)
            raise


async def versions(service: Service, call: RequestCall) -> Response:
    """GET /datasets/{dataset}/events"""
    name, last = dataset_name(call), last_event(call)
    await service.threads.run(service.questions.watch, call.owner, name)  # refuses before
    return event_stream(events.version_events(service, call.owner, name, last))


def dataset_name(call: RequestCall) -> str:
    """Return the dataset as its caller names it: NAME, or OWNER/NAME of another owner."""
    owner, name = call.request.query_params.get("owner"), call.name("dataset")
    place = f"{owner}/{name}" if owner is not None else name
    split_place(call.owner, place)  # checks both names
    return place
