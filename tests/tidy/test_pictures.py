"""Diagrams in documents: their form, the names in them, and what they say about the code."""

import re
import tomllib
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import get_args

import pytest

from caudal.formats import outcomes
from caudal.jobs.execute import execute_task
from caudal.medic import election
from caudal.medic.election import ElectionMessage, ElectionState, MessageKind, Role
from caudal.series import consolidation
from caudal.series.manifest import ManifestStatus
from tests.tidy import pictures
from tests.tidy.documents import DOCUMENTS, FILE, ROOT, definitions, exists, shown
from tests.tidy.layers import LEVEL
from tests.tidy.mermaid import Diagram, MermaidError, diagrams, parse

DRAWN = [path for path in DOCUMENTS if "```mermaid" in path.read_text(encoding="utf-8")]
_CLASS = re.compile(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b")
_FUNCTION = re.compile(r"\b([a-z_]+)\(\)")


def architecture_diagram(section: str) -> Diagram:
    """The first diagram after a heading of ARCHITECTURE.md."""
    text = pictures.ARCHITECTURE.read_text(encoding="utf-8")
    after = text[text.index(f"## {section}\n") :]
    block = re.search(r"^```mermaid\n(.*?)^```$", after, re.MULTILINE | re.DOTALL)
    assert block
    return parse(block[1])


@pytest.mark.parametrize("path", DRAWN, ids=shown)
def test_every_diagram_is_well_formed_and_names_what_exists(path: Path) -> None:
    for diagram in diagrams(path):
        assert [name for name in FILE.findall(diagram.text) if not exists(name)] == []
        if path.parent != pictures.QUERIES:  # there labels are text of queries
            named = {*_CLASS.findall(diagram.text), *_FUNCTION.findall(diagram.text)}
            assert named <= definitions("src")


@pytest.mark.parametrize(
    "broken",
    [
        "flowchart TD\n  a --> b\n",
        'flowchart TD\n  a["x"] --> b["y"\n',
        'flowchart TD\n  a["x"]\n  a["y"]\n',
        'flowchart TD\n  subgraph g["x"]\n    a["x"]\n',
        'flowchart XY\n  a["x"]\n',
        "stateDiagram-v2\n  a -> b\n",
        "sequenceDiagram\n  A->>B: x\n",
        "pie\n  a\n",
    ],
)
def test_a_broken_diagram_is_refused(broken: str) -> None:
    with pytest.raises(MermaidError):
        parse(broken)


@pytest.mark.parametrize("name", pictures.DIAGRAMS)
def test_generated_diagrams_are_what_is_generated_now(name: str) -> None:
    text = pictures.ARCHITECTURE.read_text(encoding="utf-8")
    assert pictures.DIAGRAMS[name]() in text, "run `make pictures`"
    assert pictures.architecture() == text


def test_the_map_lists_the_decisions_that_there_are() -> None:
    text = pictures.DOCUMENT_MAP.read_text(encoding="utf-8")
    assert pictures.document_map() == text, "run `make pictures`"


def test_every_room_has_a_row() -> None:
    text = pictures.ARCHITECTURE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?`) \|", text[text.index("## Rooms\n") :], re.MULTILINE)
    assert sorted(name for row in rows for name in re.findall(r"`(\w+)`", row)) == sorted(LEVEL)


def test_the_pages_of_queries_are_what_is_generated_now() -> None:
    pages = pictures.query_pages()
    assert {path.name for path in pictures.QUERIES.iterdir()} == set(pages)
    for name, page in pages.items():
        found = (pictures.QUERIES / name).read_text(encoding="utf-8")
        assert found == page, "run `make pictures`"


def test_the_life_of_a_job_ends_in_its_outcomes() -> None:
    drawn = architecture_diagram("The life of a job")
    assert set(drawn.nodes) == {"[*]", "running", *get_args(outcomes.State)}
    assert {two for one, two in drawn.edges if one == "running"} == set(get_args(outcomes.State))


def test_the_steps_of_a_worker_are_those_of_its_rules() -> None:
    drawn = architecture_diagram("The five steps of a worker")
    told = re.findall(r"^ +(\d)\. ", execute_task.__doc__ or "", re.MULTILINE)
    assert re.findall(r": (\d)\. ", drawn.text) == told


def test_the_commit_of_a_month_is_that_of_its_rules() -> None:
    drawn = architecture_diagram("Time series: the commit of a month")
    told = re.findall(r"^ (\d)\. ", consolidation.__doc__ or "", re.MULTILINE)
    assert re.findall(r": (\d)\. ", drawn.text) == told
    assert re.findall(r"create manifest (\w+)", drawn.text) == list(ManifestStatus)


def test_the_election_is_drawn_with_the_changes_that_happen() -> None:
    drawn = architecture_diagram("The election of a leader")
    changes = {(before, after) for before, after in _changes() if before is not after}
    assert set(drawn.edges) == {("[*]", _started()), *changes}


def _started() -> Role:
    return election.start(2, (1, 3), 0.0)[0].role


def _changes() -> set[tuple[Role, Role]]:
    """Every change of role of a medic in the middle, by any message or the passing of time."""
    messages = [
        ElectionMessage(kind, sender, 2, term)
        for kind, sender, term in product(MessageKind, (1, 3), (4, 5, 6))
    ]
    found = set()
    for role in Role:
        leader = {Role.LEADING: 2, Role.FOLLOWING: 3}.get(role)
        state = ElectionState(2, (1, 3), role=role, term=5, leader=leader)
        steps = [election.receive(state, message, 0.1) for message in messages]
        for waited in (0.1, 0.5, 1.3, 2.0):
            steps.append(election.tick(state, waited))  # late itself
            steps.append(election.tick(replace(state, ticked=waited), waited))
        steps.append(election.see_gone(state, 3, 0.1))
        found |= {(role, after.role) for after, _ in steps}
    return found


def test_the_deployment_is_that_of_the_guide() -> None:
    drawn = architecture_diagram("A deployment over several hosts")
    guide = (ROOT / "docs" / "howto" / "several-machines.md").read_text(encoding="utf-8")
    block = re.search(r"^```toml\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    assert block
    hosts = tomllib.loads(block[1])["hosts"]
    kinds = [("gateways", "g"), ("workers", "w"), ("medics", "m")]
    expected = {
        host: [f"{letter}{host}" for kind, letter in kinds if counts[kind]]
        for host, counts in hosts.items()
    }
    assert drawn.groups == expected
