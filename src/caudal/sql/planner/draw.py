"""The plan of one query as a graph: stages, how rows get from one to the next, what is shared."""

from collections.abc import Iterator

from caudal.sql.graph import Edge, Graph, Node, NodeShape
from caudal.sql.planner.explain import operators_told, partition_told
from caudal.sql.planner.plan import Fold, Hint, Plan, Scan

_BATCH, _PARTITION, _ONCE = "for each batch", "for each partition", "once"


def draw(plan: Plan, query: str, title: str) -> Graph:
    """Return the graph of a query, among all queries of its plan."""
    stages = [stage for stage in plan.stages() if query in stage.queries]
    hints = [hint for hint in plan.hints if any(hint.scan == stage.name for stage in stages)]
    sources = dict.fromkeys(stage for hint in hints for stage, _ in hint.sources)
    others = [plan.stage(name) for name in sources if query not in plan.stage(name).queries]
    shown = [*others, *stages]
    drawn = [_stage(stage, query) for stage in shown]
    nodes = [*_tables(shown), *drawn, *_last(plan, query, title)]
    skips = [edge for hint in hints for edge in _skips(hint)]
    edges = [*_reads(shown), *_results(plan, query), *skips]
    return Graph(tuple(nodes), tuple(edges))


def _tables(stages: list[Scan | Fold]) -> list[Node]:
    names = dict.fromkeys(stage.table for stage in stages if isinstance(stage, Scan))
    return [Node(_table(name), (name,), NodeShape.TABLE) for name in names]


def _table(name: str) -> str:
    return f"table {name}"  # a table may be called like a stage


def _stage(stage: Scan | Fold, query: str) -> Node:
    others = ", ".join(name for name in stage.queries if name != query)
    lines = [stage.name, operators_told(stage.operators)]
    if query not in stage.queries:
        lines.append(f"only for {others}")
    elif others:
        lines.append(f"shared with {others}")
    return Node(stage.name, tuple(lines), group=_group(stage))


def _group(stage: Scan | Fold) -> str:
    if isinstance(stage, Scan):
        return _BATCH
    return _PARTITION if stage.partitions == "all" else _ONCE


def _last(plan: Plan, query: str, title: str) -> list[Node]:
    finish = plan.finish(query)
    why = (f"because {finish.reason}",) if finish.reason else ()
    return [
        Node("finish", ("finish", operators_told(finish.operators)), group=_ONCE),
        Node("answer", (query, title, finish.strategy, *why), NodeShape.ANSWER),
    ]


def _reads(stages: list[Scan | Fold]) -> Iterator[Edge]:
    by_name = {stage.name: stage for stage in stages}
    for stage in stages:
        if isinstance(stage, Scan):
            yield Edge(_table(stage.table), stage.name)
        else:
            for name in stage.inputs:
                if name in by_name:  # else a fold of other queries, shown only for its keys
                    yield Edge(name, stage.name, partition_told(by_name[name].partition))


def _results(plan: Plan, query: str) -> Iterator[Edge]:
    for name in dict.fromkeys(plan.finish(query).inputs.values()):
        yield Edge(name, "finish", partition_told(plan.stage(name).partition))
    yield Edge("finish", "answer")


def _skips(hint: Hint) -> Iterator[Edge]:
    for stage in dict.fromkeys(stage for stage, _ in hint.sources):
        yield Edge(stage, hint.scan, "keys, once complete", is_dotted=True)
