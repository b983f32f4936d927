"""What the page draws of a job: its plans, its tasks, what a result holds, and answers so far."""

from starlette.responses import Response

from caudal.formats.replies import PlanPage, SoFar
from caudal.gateway.refusals import Refusal
from caudal.gateway.replies import json_answer
from caudal.gateway.service import RequestCall, Service
from caudal.jobs.plan_pictures import plans_of
from caudal.jobs.shown_facts import tasks_of

_MOST_AFTER = 100
_DIGITS = 12  # of a number of batches, at most


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


async def so_far(service: Service, call: RequestCall) -> Response:
    """GET /jobs/{job}/results/{query}/so-far"""
    asked, query = call.request.query_params, call.name("query")
    after, form = asked.get("after", "0"), asked.get("form", "rows")
    if not after.isascii() or not after.isdecimal() or len(after) > _DIGITS:
        raise Refusal(400, "bad_request", "after must be a number of batches")
    if form not in ("rows", "stream"):
        raise Refusal(400, "bad_request", "form must be rows or stream")
    growing = await service.threads.run(service.gateway.growing, *call.job, query)
    room = service.previewers if service.growths.is_due(growing) else service.threads

    def reply() -> SoFar:
        run, found = growing.job_run.job.run, service.growths.newest(growing)
        if found is None:
            return SoFar(run)
        return found.reply(run, int(after), as_stream=form == "stream")

    return json_answer(await room.run(reply))
