"""Every rule of the planner does what the example in its docstring shows.

An example is a block of sections, each a name with a colon and indented lines below it. A rule for
texts has `before` and `after`. A rule for the algebra has the `query`, its algebra `before` and
`after` the rule; it may name a rule that runs first. An operator that is cut into stages has the
`query` and its `plan`, as `explain` prints it.
"""

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from tests.corpus.statements import SCHEMAS, statements
from tests.unit.sql.algebra_text import algebra_text

from caudal.duck.binder import DuckDBBinder
from caudal.sql.planner import TextChecks, averages, current_time, dialect, explain, plan
from caudal.sql.planner.hints import make_hints
from caudal.sql.planner.lower import Lowering
from caudal.sql.planner.lower_aggregate import Grouping
from caudal.sql.planner.lower_join import JoinPlacement, lower_set_operation
from caudal.sql.planner.query_reader import read_query
from caudal.sql.planner.rules import RULES, TEXT_RULES, rewrite_text
from caudal.sql.planner.text_checks import may_be_rewritten

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LOWERINGS = [
    Lowering.lower_filter, Lowering.lower_extend, Lowering.lower_unnest, Lowering.lower_windows,
    Lowering.lower_union, Lowering.lower_top, Grouping.group_in_place, Grouping.group_by_key,
    Grouping.group_everything, JoinPlacement.join_by_partition, JoinPlacement.join_whole_right,
    JoinPlacement.join_whole_left, JoinPlacement.join_in_one_place, lower_set_operation,
]  # fmt: skip
_SECTION = re.compile(r"^(\w[\w ]*):\n((?:    .*\n|\n)*)", re.MULTILINE)


@pytest.fixture(scope="module")
def binder() -> Iterator[DuckDBBinder]:
    made = DuckDBBinder(SCHEMAS)
    yield made
    made.close()


def example(function: Callable[..., object]) -> dict[str, str]:
    """The sections of the example in a docstring."""
    _, found, block = (inspect.getdoc(function) or "").partition("Example::\n\n")
    assert found, f"{function.__qualname__} has no example"
    sections = _SECTION.findall(textwrap.dedent(block) + "\n")
    return {name: textwrap.dedent(body).strip() for name, body in sections}


def words(sql: str) -> str:
    return " ".join(sql.split())


@pytest.mark.parametrize("rule", TEXT_RULES)
def test_a_rule_for_texts_does_what_it_shows(rule: Callable[[str, TextChecks], str]) -> None:
    shown = example(rule)
    assert words(rule(shown["before"], TextChecks(MOMENT))) == words(shown["after"])
    assert words(shown["before"]) != words(shown["after"])


@pytest.mark.parametrize("rule", TEXT_RULES)
def test_a_text_that_a_rule_changes_is_said_to_be_changeable(
    rule: Callable[[str, TextChecks], str],
) -> None:
    assert may_be_rewritten(example(rule)["before"])


def test_every_statement_that_rules_change_is_said_to_be_changeable() -> None:
    all_texts = [one.sql for one in statements()]
    changed = [sql for sql in all_texts if rewrite_text(sql, TextChecks(MOMENT)) != sql]
    assert changed
    assert [sql for sql in changed if not may_be_rewritten(sql)] == []


@pytest.mark.parametrize("name", [*averages.NAMES, *current_time.NAMES])
def test_every_name_that_rules_replace_makes_a_text_changeable(name: str) -> None:
    assert may_be_rewritten(f"SELECT {name}(x)")
    assert may_be_rewritten(f"SELECT {name.upper()}")


def test_other_texts_are_not_said_to_be_changeable() -> None:
    assert not may_be_rewritten("SELECT 1")
    assert not may_be_rewritten("SELECT title, sum(sales) FROM books GROUP BY 1")


@pytest.mark.parametrize("place", range(len(RULES)), ids=[rule.__name__ for rule in RULES])
def test_a_rule_for_the_algebra_does_what_it_shows(place: int) -> None:
    shown = example(RULES[place])
    relation, context = read_query(dialect.parse(shown["query"]), SCHEMAS, {})
    node = relation.node
    assert algebra_text(relation, node) == shown["before"]
    for earlier in RULES[:place]:
        if f"after {earlier.__name__}" in shown:
            node = earlier(node, context)
            assert algebra_text(relation, node) == shown[f"after {earlier.__name__}"]
    changed = RULES[place](node, context)
    assert algebra_text(relation, changed) == shown["after"]
    assert algebra_text(relation, changed) != algebra_text(relation, node)


@pytest.mark.parametrize("step", [*LOWERINGS, make_hints], ids=lambda step: step.__qualname__)
def test_an_operator_is_cut_into_the_stages_that_it_shows(
    step: Callable[..., object], binder: DuckDBBinder
) -> None:
    shown = example(step)
    made = plan({"q": shown["query"]}, SCHEMAS, binder=binder)
    first, *stages = explain(made, "q").splitlines()
    assert first.startswith(f"q: {shown.get('strategy', 'scaled')}:")
    assert textwrap.dedent("\n".join(stages)) == shown["plan"]
