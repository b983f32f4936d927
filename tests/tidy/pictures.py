"""What is generated: two diagrams in ARCHITECTURE.md, the pages of docs/queries/, the list of ADRs.

`make pictures` writes them; test_pictures.py fails when they differ from what is generated now.
"""

from pathlib import Path

from caudal.application import load_application, shipped_applications
from caudal.duck.job_plan import make_plan
from caudal.embedded.explain import explain_query
from caudal.kernels.sentiment import load_model
from caudal.model import Application, Query
from caudal.sql.graph import PlanFormat, to_mermaid
from caudal.sql.planner import Plan, draw
from tests.tidy.election_story import leader_dies
from tests.tidy.layers import LAYERS, room_imports, without_shortcuts

ROOT = Path(__file__).parents[2]
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
ADRS = ROOT / "docs" / "adr"
DOCUMENT_MAP = ROOT / "docs" / "README.md"
QUERIES = ROOT / "docs" / "queries"


def rooms_diagram() -> str:
    """Return the rooms and their imports, without those that follow from others."""
    graph: dict[str, set[str]] = {}
    for source, targets in room_imports().items():
        graph.setdefault(_drawn(source), set()).update(map(_drawn, targets))
    arrows = without_shortcuts({source: graph[source] - {source} for source in graph})
    lines = [f'  {name}["{name.strip("_")}"]' for layer in reversed(LAYERS[1:]) for name in layer]
    lines.append(f'  base["{", ".join(LAYERS[0])}"]')
    lines += sorted(f"  {source} --> {one}" for source, to in arrows.items() for one in to)
    return "\n".join(["flowchart TD", *lines]) + "\n"


def _drawn(room: str) -> str:
    return "base" if room in LAYERS[0] else room


DIAGRAMS = {"rooms": rooms_diagram, "election": leader_dies}


def architecture() -> str:
    """Return ARCHITECTURE.md with its generated diagrams as they are now."""
    text = ARCHITECTURE.read_text(encoding="utf-8")
    for name, diagram in DIAGRAMS.items():
        mark = f"<!-- {name}: written by `make pictures` -->\n```mermaid\n"
        before, found, rest = text.partition(mark)
        assert found, name
        text = before + mark + diagram() + rest[rest.index("```\n") :]
    return text


def document_map() -> str:
    """Return docs/README.md with the present list of decisions."""
    before, found, _ = DOCUMENT_MAP.read_text(encoding="utf-8").partition("## Decisions\n")
    heads = {
        path.name: path.read_text("utf-8").splitlines()[0] for path in sorted(ADRS.glob("*.md"))
    }
    rows = [f"- [{head.removeprefix('# ')}](adr/{name})\n" for name, head in heads.items()]
    return before + found + "".join(rows)


def query_pages() -> dict[str, str]:
    """Return the pages of docs/queries/ by name."""
    apps = [load_application(folder) for folder in shipped_applications().values()]
    plans = {app.name: make_plan(app, None, {}, load_model(app.sentiment)).plan for app in apps}
    pages = {
        _page_name(app, query): _page(app, query, plans[app.name])
        for app in apps
        for query in app.queries
    }
    rows = [
        f"- [{app.name} {query.name}]({_page_name(app, query)}): {query.title}"
        for app in apps
        for query in app.queries
    ]
    head = "# The shipped queries\n\nTitle, SQL and plans of each; written by `make pictures`.\n\n"
    return {"README.md": head + "\n".join(rows) + "\n", **pages}


def _page_name(app: Application, query: Query) -> str:
    return f"{app.name}-{query.name}.md"


def _page(app: Application, query: Query, plan: Plan) -> str:
    split = to_mermaid(draw(plan, query.name, query.title))
    embedded = explain_query(app, query.name, {}, PlanFormat.MERMAID)
    return f"""# {app.name} {query.name}: {query.title}

```sql
{query.sql.strip()}
```

## Split, as on a cluster
`caudal explain {app.name} {query.name} --engine split --format mermaid`. A dotted arrow carries
only keys: once they are complete, rows with other keys are skipped.

```mermaid
{split}
```

## Embedded
`caudal explain {app.name} {query.name} --format mermaid`. DuckDB plans the operators.

```mermaid
{embedded}
```

Written by `make pictures`.
"""


def write() -> None:
    """Write everything that is generated."""
    ARCHITECTURE.write_text(architecture(), encoding="utf-8")
    DOCUMENT_MAP.write_text(document_map(), encoding="utf-8")
    QUERIES.mkdir(exist_ok=True)
    for name, text in query_pages().items():
        (QUERIES / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
