"""What the page draws of a job: its plans, its tasks, and what a result holds."""

from starlette.responses import Response

from caudal.formats.replies import PlanPage
from caudal.gateway.refusals import Refusal
from caudal.gateway.replies import json_answer
from caudal.gateway.service import RequestCall, Service
from caudal.jobs.plan_pictures import plans_of
from caudal.jobs.shown_facts import tasks_of

_MOST_AFTER = 100


async def plan(service: Service, call: RequestCall) -> Response:
    """GET /jobs/{job}/plan"""

    def drawn() -> PlanPage:
        return plans_of(service.gateway.seen(*call.job))

    return json_answer(await service.threads.run(drawn))


async def tasks(service: Service, call: RequestCall) -> Response:
    """GET /jobs/{job}/tasks"""
    after = call.request.query_params.get("after", "")
    if len(after) > _MOST_AFTER or not all(one.isalnum() or one in "-_" for one in after):
        raise Refusal(400, "bad_request", "after must be the `last` of an earlier answer")

    def read() -> object:
        return tasks_of(service.ports.store, service.gateway.seen(*call.job), after)

    return json_answer(await service.threads.run(read))


async def about(service: Service, call: RequestCall) -> Response:
    """GET /jobs/{job}/results/{query}/about"""
    found = await service.threads.run(service.gateway.open_result, *call.job, call.name("query"))
    if found.index.error:
        raise Refusal(422, "query_failed", found.index.error)
    return json_answer(await service.threads.run(found.about))
