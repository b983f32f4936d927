"""Plans as the page draws them: the graphs of `caudal explain`, with the SQL of each step."""

from caudal.formats.replies import PlanEdge, PlanGraph, PlanNode, PlanPage
from caudal.jobs.runs import JobRun, query_names
from caudal.sql.graph import Graph
from caudal.sql.planner import Plan, draw


def plans_of(job_run: JobRun) -> PlanPage:
    """Return the graph of every query: the one that `caudal explain` draws, with its SQL."""
    split = job_run.split
    return PlanPage(
        {
            name: split_graph(split.plan, name, split.query(name).title)
            for name in query_names(job_run)
        }
    )


def split_graph(plan: Plan, query: str, title: str) -> PlanGraph:
    """Return the graph of one query of a plan."""
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
