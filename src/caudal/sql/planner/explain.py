"""A plan as text: the stages of a query, which are shared, and why it is not split."""

from collections.abc import Iterator

from caudal.sql.planner.plan import Finish, Fold, Partition, Plan, Scan

_STRATEGIES = {
    "scaled": "splits over batches and partitions",
    "gathered": "gathers the rows it needs and runs in one place",
    "whole tables": "gathers whole tables and runs in one place",
}


def explain(plan: Plan, query: str, *, sql: bool = False) -> str:
    """Return the stages of a query as text; with `sql`, the SQL of each stage too."""
    return "\n".join(_lines(plan, plan.finish(query), sql))


def _lines(plan: Plan, finish: Finish, sql: bool) -> Iterator[str]:
    query = finish.query
    yield f"{query}: {finish.strategy}: {_STRATEGIES[finish.strategy]}"
    if finish.reason:
        yield f"  because: {finish.reason}"
    hints = {hint.scan: hint for hint in plan.hints}
    for scan in plan.scans:
        if query in scan.queries:
            yield _line(scan.name, f"each batch of {scan.table}", scan.operators, scan.partition)
            yield from _sharing(scan, query)
            if scan.name in hints:
                stages = " and ".join(dict.fromkeys(s for s, _ in hints[scan.name].sources))
                yield f"{'':10}may skip rows whose key is not in {stages}, once complete"
            yield from _fragment(scan.sql, sql)
    for fold in plan.folds:
        if query in fold.queries:
            each = "each partition of " if fold.partitions == "all" else "all of "
            reads = each + ", ".join(fold.inputs)
            yield _line(fold.name, reads, fold.operators, fold.partition)
            yield from _sharing(fold, query)
            yield from _fragment(fold.sql, sql)
    reads = "all of " + (", ".join(finish.inputs.values()) or "nothing")
    yield f"  {'finish':8}{reads}: {operators_told(finish.operators)}"
    yield from _fragment(finish.sql, sql)


def _line(name: str, reads: str, operators: tuple[str, ...], partition: Partition) -> str:
    return f"  {name:8}{reads}: {operators_told(operators)} -> {partition_told(partition)}"


def operators_told(operators: tuple[str, ...]) -> str:
    """Return the operators of a stage as words."""
    return ", ".join(operators) or "read"


def partition_told(partition: Partition) -> str:
    """Return how the rows of a stage reach their readers, as words."""
    if partition.kind == "hash":
        return f"hashed by {', '.join(partition.keys)}"
    return "spread as it lies" if partition.kind == "spread" else "gathered"


def _sharing(stage: Scan | Fold, query: str) -> Iterator[str]:
    others = [name for name in stage.queries if name != query]
    if others:
        yield f"{'':10}shared with {', '.join(others)}"


def _fragment(text: str, wanted: bool) -> Iterator[str]:
    if wanted:
        yield from (f"{'':10}| {line}" for line in text.strip().splitlines())
