"""A strict reader for the Mermaid that our documents use: a small part of the language.

A diagram that uses more of it is refused: extend the reader, and check the new form with Mermaid.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

_BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LABEL = r'"[^"]+"'
_BRACKETS = [(r"\[\(", r"\)\]"), (r"\[", r"\]"), (r"\(", r"\)"), (r"\{\{", r"\}\}")]
_SHAPES = "|".join(f"{left}{_LABEL}{right}" for left, right in _BRACKETS)
_NODE = rf"(\w+)({_SHAPES})?"
_FLOW_NODE = re.compile(rf"\s+{_NODE}")
_FLOW_EDGE = re.compile(rf"\s+{_NODE} (?:-->|-\.->|<-->)(?:\|{_LABEL}\|)? {_NODE}")
_FLOW_GROUP = re.compile(rf"\s+subgraph (\w+)\[{_LABEL}\]")
_STATE = re.compile(r"\s+(\[\*\]|\w+) --> (\[\*\]|\w+)(?:: [^;#\"]+)?")
_PARTICIPANT = re.compile(r"\s+participant (\w+) as [^;#\"]+")
_MESSAGE = re.compile(r"\s+(\w+)->>(\w+): [^;#\"]+")
_NOTE = re.compile(r"\s+Note over (\w+)(?:,(\w+))?: [^;#\"]+")


class MermaidError(AssertionError):
    """A diagram that is not of the form that we use."""


@dataclass
class Diagram:
    """What a diagram names: its nodes (states, participants), groups, and edges between nodes."""

    kind: str
    text: str
    nodes: list[str] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)
    edges: list[tuple[str, str]] = field(default_factory=list)


def diagrams(path: Path) -> list[Diagram]:
    """Return the diagrams of a document."""
    return [parse(block) for block in _BLOCK.findall(path.read_text(encoding="utf-8"))]


def parse(block: str) -> Diagram:
    """Read one diagram; raise MermaidError if it is not of the form that we use."""
    head, *lines = block.splitlines()
    diagram = Diagram(head.split()[0], block)
    readers = {
        "flowchart": _read_flowchart,
        "stateDiagram-v2": _read_states,
        "sequenceDiagram": _read_sequence,
    }
    if diagram.kind not in readers or not lines:
        raise MermaidError(f"no diagram that we use: {head}")
    readers[diagram.kind](diagram, lines)
    _check_ends(diagram)
    return diagram


def _read_flowchart(diagram: Diagram, lines: list[str]) -> None:
    if not re.fullmatch(r"flowchart (TD|LR)", diagram.text.splitlines()[0]):
        raise MermaidError("a flowchart goes TD or LR")
    group = ""
    for line in lines:
        if found := _FLOW_GROUP.fullmatch(line):
            _require(not group, line)
            group = found[1]
            diagram.groups[group] = []
        elif line.strip() == "end":
            _require(bool(group), line)
            group = ""
        elif found := _FLOW_EDGE.fullmatch(line):
            _define(diagram, group, found[1], found[2])
            _define(diagram, group, found[3], found[4])
            diagram.edges.append((found[1], found[3]))
        elif found := _FLOW_NODE.fullmatch(line):
            _require(bool(found[2]), line)
            _define(diagram, group, found[1], found[2])
        else:
            raise MermaidError(line)
    _require(not group, "a subgraph without an end")


def _define(diagram: Diagram, group: str, name: str, shape: str | None) -> None:
    if shape:
        _require(name not in diagram.nodes, f"{name} is defined twice")
        diagram.nodes.append(name)
        if group:
            diagram.groups[group].append(name)


def _read_states(diagram: Diagram, lines: list[str]) -> None:
    for line in lines:
        found = _STATE.fullmatch(line)
        if not found:
            raise MermaidError(line)
        diagram.edges.append((found[1], found[2]))
    diagram.nodes = list(dict.fromkeys(name for edge in diagram.edges for name in edge))


def _read_sequence(diagram: Diagram, lines: list[str]) -> None:
    for line in lines:
        if found := _PARTICIPANT.fullmatch(line):
            diagram.nodes.append(found[1])
        elif found := _MESSAGE.fullmatch(line) or _NOTE.fullmatch(line):
            diagram.edges.append((found[1], found[2] or found[1]))
        else:
            raise MermaidError(line)


def _check_ends(diagram: Diagram) -> None:
    for name in (name for edge in diagram.edges for name in edge):
        _require(name in diagram.nodes, f"{name} is not defined")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise MermaidError(message)
