"""What the page draws of a job: its plans, its tasks, and what a result holds."""

from starlette.responses import Response

from caudal.formats.replies import PlanEdge, PlanGraph, PlanNode, PlanPage
from caudal.gateway.refusals import Refusal
from caudal.gateway.replies import json_answer
from caudal.gateway.service import RequestCall, Service
from caudal.jobs.runs import JobRun, query_names
from caudal.jobs.shown_facts import tasks_of
from caudal.sql.graph import Graph
from caudal.sql.planner import Plan, draw

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


def plans_of(job_run: JobRun) -> PlanPage:
    """Return the graph of every query: the one that `caudal explain` draws, with its SQL."""
    split = job_run.split
    return PlanPage(
        {name: _graph(split.plan, name, split.query(name).title) for name in query_names(job_run)}
    )


def _graph(plan: Plan, query: str, title: str) -> PlanGraph:
    graph, sql = draw(plan, query, title), _sql_of(plan, query)
    stages = {stage.name: stage.name for stage in plan.stages()} | {"finish": query}
    return graph_reply(graph, title, sql, stages)


def _sql_of(plan: Plan, query: str) -> dict[str, str]:
    found = {stage.name: stage.sql for stage in plan.stages()}
    return {**found, "finish": plan.finish(query).sql}


def graph_reply(graph: Graph, title: str, sql: dict[str, str], stages: dict[str, str]) -> PlanGraph:
    """Return a graph as the page draws it."""
    return PlanGraph(
        title,
        tuple(
            PlanNode(
                one.name,
                one.lines,
                one.shape.value,
                one.group,
                sql.get(one.name, ""),
                stages.get(one.name, ""),
            )
            for one in graph.nodes
        ),
        tuple(PlanEdge(one.source, one.target, one.label, one.is_dotted) for one in graph.edges),
    )
