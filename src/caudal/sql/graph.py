"""A query plan as a graph, written as Mermaid or as DOT (Graphviz).

Labels may hold any text of a query, so escaping is by what is known to be harmless:

1. Mermaid. `#NN;` is the character with that number. Everything is written so, except letters,
   digits and spaces of ASCII and a little punctuation where it cannot mean anything. Otherwise a
   quotation mark would end the label, `<` would begin HTML, `%%{` a directive, `$$` a formula,
   `1.` or `-` at the begin of a line a Markdown list, `www.` a link; and Mermaid drops the `;` of
   an escape that follows the word `style` and a colon. `$$`, and `ﬂ°` which Mermaid writes for an
   escape itself, are looked for again when the escapes are gone: a space of no width parts them.
2. DOT. A backslash and a quotation mark get a backslash, `&` would begin an HTML entity.
3. Control characters become spaces, and long lines are cut, in both.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

_MOST_CHARACTERS = 100  # of a line of a label
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ONCE_MORE = re.compile(r"\$(?=\$)|ﬂ(?=°)")
_ENCODED = re.compile(
    r"""
    ^[^A-Za-z(]  # the first character, unless it is a letter or a parenthesis
    | (?!
        [A-Za-z0-9(),/]
        | (?<=[A-Za-z0-9])_(?=[A-Za-z0-9])
        | (?<=[A-Za-z0-9])(?<![wW]{3})\.(?=[A-Za-z0-9])
        | (?<=[^ ])[ ](?=[^ ])
        | (?<=[^ ][ ])=(?=[ ])
      ).
    """,
    re.VERBOSE,
)


class PlanFormat(StrEnum):
    """How `caudal explain` writes a plan."""

    TEXT = "text"
    MERMAID = "mermaid"
    DOT = "dot"


class NodeShape(StrEnum):
    """What a node stands for."""

    TABLE = "table"
    STEP = "step"
    ANSWER = "answer"


@dataclass(frozen=True)
class Node:
    """`name` is unique in its graph. Nodes with the same `group` are drawn in one frame."""

    name: str
    lines: tuple[str, ...]
    shape: NodeShape = NodeShape.STEP
    group: str = ""


@dataclass(frozen=True)
class Edge:
    """Rows go from `source` to `target`; a dotted edge carries only keys."""

    source: str
    target: str
    label: str = ""
    is_dotted: bool = False


@dataclass(frozen=True)
class Graph:
    """Nodes in the order in which rows reach them, and edges between their names."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def groups(self) -> dict[str, list[Node]]:
        """The nodes by group, in order."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            found.setdefault(node.group, []).append(node)
        return found

    def ids(self) -> dict[str, str]:
        """An identifier for each node that needs no escape."""
        return {node.name: f"n{place}" for place, node in enumerate(self.nodes)}


def render(graph: Graph, form: PlanFormat) -> str:
    """Write a graph as Mermaid or DOT."""
    return to_mermaid(graph) if form is PlanFormat.MERMAID else to_dot(graph)


_MERMAID_BRACKETS = {
    NodeShape.TABLE: ("[(", ")]"),
    NodeShape.STEP: ("[", "]"),
    NodeShape.ANSWER: ("(", ")"),
}
_DOT_SHAPES = {NodeShape.TABLE: "cylinder", NodeShape.STEP: "box", NodeShape.ANSWER: "oval"}


def to_mermaid(graph: Graph) -> str:
    """Write a graph as a Mermaid flowchart."""
    return "\n".join(["flowchart TD", *_mermaid_nodes(graph), *_mermaid_edges(graph)])


def _mermaid_nodes(graph: Graph) -> Iterator[str]:
    ids = graph.ids()
    for place, (group, nodes) in enumerate(graph.groups().items()):
        if group:
            yield f'  subgraph g{place}["{mermaid_label(group)}"]'
        for node in nodes:
            before, after = _MERMAID_BRACKETS[node.shape]
            label = "<br/>".join(map(mermaid_label, node.lines))
            yield f'{"    " if group else "  "}{ids[node.name]}{before}"{label}"{after}'
        if group:
            yield "  end"


def _mermaid_edges(graph: Graph) -> Iterator[str]:
    ids = graph.ids()
    for edge in graph.edges:
        arrow = "-.->" if edge.is_dotted else "-->"
        label = f'|"{mermaid_label(edge.label)}"|' if edge.label else ""
        yield f"  {ids[edge.source]} {arrow}{label} {ids[edge.target]}"


def mermaid_label(text: str) -> str:
    """Write a line for a quoted label of Mermaid.

    >>> mermaid_label('"year" >= 1990')
    '#34;year#34; #62;#61; 1990'
    """
    line = _ONCE_MORE.sub("\\g<0>\u200b", _one_line(text))
    return _ENCODED.sub(lambda found: f"#{ord(found[0])};", line)


def to_dot(graph: Graph) -> str:
    """Write a graph in the language of Graphviz."""
    lines = ["digraph plan {", '  node [fontname="Helvetica"];', *_dot_nodes(graph)]
    ids = graph.ids()
    for edge in graph.edges:
        style = ", style=dashed" if edge.is_dotted else ""
        lines.append(
            f'  {ids[edge.source]} -> {ids[edge.target]} [label="{dot_label(edge.label)}"{style}];'
        )
    return "\n".join([*lines, "}"])


def _dot_nodes(graph: Graph) -> Iterator[str]:
    ids = graph.ids()
    for place, (group, nodes) in enumerate(graph.groups().items()):
        if group:
            yield f'  subgraph cluster_{place} {{ label="{dot_label(group)}";'
        for node in nodes:
            label = "".join(f"{dot_label(line)}\\n" for line in node.lines)
            shape = _DOT_SHAPES[node.shape]
            yield f'{"    " if group else "  "}{ids[node.name]} [shape={shape}, label="{label}"];'
        if group:
            yield "  }"


def dot_label(text: str) -> str:
    r"""Write a line for a quoted string of DOT.

    >>> print(dot_label('a "b" & \\n'))
    a \"b\" &amp; \\n
    """
    plain = _one_line(text).replace("&", "&amp;")
    return plain.replace("\\", "\\\\").replace('"', '\\"')


def _one_line(text: str) -> str:
    line = _CONTROL.sub(" ", text)
    return line if len(line) <= _MOST_CHARACTERS else f"{line[: _MOST_CHARACTERS - 2]} …"
