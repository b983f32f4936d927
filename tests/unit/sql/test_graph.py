"""Plans as pictures: what is drawn, and labels that may hold any text of a query."""

import html
import re
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.corpus.statements import SCHEMAS as CORPUS
from tests.corpus.statements import statements
from tests.fuzz.tables import SCHEMAS
from tests.tidy import mermaid

from caudal.duck.binder import DuckDBBinder
from caudal.sql.graph import Edge, Graph, Node, dot_label, mermaid_label, to_dot, to_mermaid
from caudal.sql.planner import draw, plan

NO_WIDTH = "\u200b"
HOSTILE = [
    'a"]; click n0 href "javascript:alert(1)"',
    "<script>alert(1)</script> & <br/>",
    "%%{init: {'theme': 'dark'}}%%",
    "style x::VARCHAR # ; classDef y: #fff;",
    "#34; #quot; ﬂ°°34¶ß",
    "$$x^2$$ `code` **bold** _em_ fa:fa-car",
    "1. one",
    "1) one",
    "- minus",
    "    four spaces",
    "===",
    "www.example.com https://example.com a@example.com",
    'back\\slash \\N "quoted" \\',
    "Ñandú 語 🎬",
    "tab\tline\nnull\0end",
]


def _plain(text: str) -> str:
    """The text that a label can show: one line of bounded length without control characters."""
    line = re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]", " ", text)
    return line if len(line) <= 100 else line[:98] + " …"


def _with_examples(function: Callable[[str], None]) -> Callable[[str], None]:
    for text in HOSTILE:
        function = example(text)(function)
    return function


@given(st.text(max_size=150))
@_with_examples
def test_a_label_of_mermaid_is_harmless_and_says_the_text(text: str) -> None:
    label = mermaid_label(text)
    shown = re.sub(r"#(\d+);", lambda found: chr(int(found[1])), label)
    assert shown.replace(NO_WIDTH, "") == _plain(text).replace(NO_WIDTH, "")
    assert "$$" not in shown
    left = re.sub(r"#\d+;", "¤", label)
    assert re.fullmatch(r"[A-Za-z0-9(),/_.= ¤]*", left)
    assert not re.search(r"^[^A-Za-z(¤]|  |^ | $|\d\. |www\.|(^|[^A-Za-z0-9])_|==", left)


@given(st.text(max_size=150))
@_with_examples
def test_a_label_of_dot_ends_where_it_should_and_says_the_text(text: str) -> None:
    label = dot_label(text)
    assert re.fullmatch(r'([^"\\]|\\["\\])*', label)
    shown = html.unescape(re.sub(r'\\(["\\])', r"\1", label))
    assert shown == html.unescape(_plain(text).replace("&", "&amp;"))
    assert shown == _plain(text)


def test_hostile_names_stay_within_their_labels() -> None:
    nodes = tuple(Node(text, (text, text), group=text) for text in HOSTILE)
    edges = tuple(Edge(one, two, one) for one in HOSTILE for two in HOSTILE)
    graph = Graph(nodes, edges)
    for line in to_mermaid(graph).splitlines()[1:]:
        assert re.fullmatch(
            r'\s+(subgraph g\d+\["[^"<>%$]*"\]|n\d+\["[^"%$]*"\]|end|n\d+ -->\|"[^"%$]*"\| n\d+)',
            line,
        )
    quoted = r'"(?:[^"\\]|\\.)*"'
    for line in to_dot(graph).splitlines()[1:-1]:
        assert re.fullmatch(
            rf"\s+(node .*|subgraph cluster_\d+ {{ label={quoted};|}}"
            rf"|n\d+ \[shape=box, label={quoted}\];|n\d+ -> n\d+ \[label={quoted}\];)",
            line,
        )


SHARED = {
    "a": "SELECT shop, count(*) AS n FROM sales GROUP BY shop",
    "b": "SELECT s.shop FROM sales s JOIN items i USING (item) WHERE i.item > 3",
    "c": "SELECT shop, count(*) AS n FROM sales GROUP BY shop ORDER BY n, shop LIMIT 3",
}


def test_a_plan_is_drawn_with_stages_keys_and_sharing() -> None:
    made = plan(SHARED, SCHEMAS)
    graph = draw(made, "a", "Sales by shop")
    scan = next(node for node in graph.nodes if node.group == "for each batch")
    assert scan.lines == (scan.name, "partial group", "shared with c")
    hashed = [edge for edge in graph.edges if edge.source == scan.name]
    assert [edge.label for edge in hashed] == [f"hashed by {made.scans[0].partition.keys[0]}"]
    assert graph.nodes[-1].lines == ("a", "Sales by shop", "scaled")


@pytest.mark.parametrize("query", SHARED)
def test_every_stage_of_a_query_is_on_a_way_to_its_answer(query: str) -> None:
    made = plan(SHARED, SCHEMAS)
    graph = draw(made, query, "")
    reached, frontier = {"answer"}, ["answer"]
    while frontier:
        target = frontier.pop()
        new = {edge.source for edge in graph.edges if edge.target == target} - reached
        reached |= new
        frontier += sorted(new)
    assert {stage.name for stage in made.stages() if query in stage.queries} <= reached
    assert reached == {node.name for node in graph.nodes}


def test_keys_that_let_a_scan_skip_rows_are_dotted() -> None:
    made = plan(SHARED, SCHEMAS)
    hints = {(source, hint.scan) for hint in made.hints for source, _ in hint.sources}
    drawn = {
        (edge.source, edge.target)
        for query in SHARED
        for edge in draw(made, query, "").edges
        if edge.is_dotted
    }
    assert drawn == hints
    assert hints


@pytest.mark.long
def test_every_plan_of_the_corpus_is_drawn_as_a_well_formed_diagram() -> None:
    binder = DuckDBBinder(CORPUS)
    for statement in statements():
        graph = draw(plan({"q": statement.sql}, CORPUS, binder=binder), "q", statement.sql)
        drawn = mermaid.parse(to_mermaid(graph) + "\n")
        assert len(drawn.nodes) == len(graph.nodes)
        assert len(drawn.edges) == len(graph.edges)
    binder.close()
