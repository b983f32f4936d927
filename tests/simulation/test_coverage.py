"""Every effect of the code is met, and a process is killed before and after each of them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from caudal import jobs
from tests.simulation.dataset_world import simulate_dataset
from tests.simulation.tally import Tally, reach_the_rest, run_all

SEEDS = 24
MORE = (55, *range(SEEDS, 120))  # seeds for what is rare; the first is known to meet it
DATASETS = range(4)  # seeds; `make simulate DATASETS=1` reaches every point of them
# Facts for people who watch (jobs/shown_facts.py). The simulation neither reads nor writes them,
# and they decide nothing.
SHOWN = {"forget_samples", "process_sample", "samples_since", "task_facts", "tasks_of"}
# All simulated workers have one version (tests/unit/tasks and `make upgrade` have two).
OTHER_VERSIONS = {"_leave"}
PORTS = {
    "store": {"create", "read", "list", "delete", "replace"},
    "broker": {"publish", "depths"},
    "consumer": {"take", "acknowledge", "hand_back"},
}


@pytest.mark.long
def test_a_process_is_killed_before_and_after_every_effect_of_the_code() -> None:
    """The effects are those that the code was seen to have, by the path of calls to them."""
    tally = run_all(range(SEEDS))
    for point in reach_the_rest(tally):
        assert point in tally.coverage().crashes, f"no process was killed {point}"
    assert tally.coverage().unreached() == []
    assert len(tally.coverage().points()) > 250
    seen = _functions_seen(tally) | _functions_seen(run_all(DATASETS, simulate_dataset))
    more = iter(MORE)
    while missing := set(_functions_with_effects()) - seen - SHOWN - OTHER_VERSIONS:
        seed = next(more, None)
        assert seed is not None, sorted(missing)
        seen |= _functions_seen(run_all([seed]))


def _functions_seen(tally: Tally) -> set[str]:
    """All functions on the way to any effect."""
    return {name for effect in tally.effects for name in effect.split(": ")[1].split(" > ")}


def _functions_with_effects() -> Iterator[str]:
    """The functions of the loops that ask a store, a broker or a consumer themselves."""
    for path in sorted(Path(jobs.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and any(map(_is_effect, ast.walk(node))):
                yield node.name


def _is_effect(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    port = ast.unparse(node.func.value).rpartition(".")[2].lstrip("_")
    return node.func.attr in PORTS.get(port, ())
