"""The pictures that are generated: the rooms in ARCHITECTURE.md and the pages of docs/queries/.

`make pictures` writes them; test_pictures.py fails when they differ from what is generated now.
"""

import re
from pathlib import Path

from caudal.application import load_application, shipped_applications
from caudal.duck.job_plan import make_plan
from caudal.embedded.explain import explain_query
from caudal.kernels.sentiment import load_model
from caudal.model import Application, Query
from caudal.sql.graph import PlanFormat, to_mermaid
from caudal.sql.planner import Plan, draw
from tests.tidy.layers import LAYERS, room_imports, without_shortcuts

ROOT = Path(__file__).parents[2]
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
QUERIES = ROOT / "docs" / "queries"
_ROOMS = re.compile(
    r"(<!-- rooms: written by `make pictures` -->\n```mermaid\n)(.*?)(^```$)", re.M | re.S
)


def rooms_diagram() -> str:
    """Return the rooms and their imports, without those that follow from others."""
    base = LAYERS[0]
    drawn = {"base" if name in base else name for layer in LAYERS for name in layer}
    graph: dict[str, set[str]] = {name: set() for name in drawn}
    for source, targets in room_imports().items():
        to = {"base" if name in base else name for name in targets}
        graph["base" if source in base else source] |= to
    graph["base"].clear()
    lines = ["flowchart TD"]
    for layer in reversed(LAYERS[1:]):
        lines += [f'  {name}["{name.strip("_")}"]' for name in layer]
    lines.append(f'  base["{", ".join(base)}"]')
    for source, targets in without_shortcuts(graph).items():
        lines += [f"  {source} --> {target}" for target in sorted(targets)]
    return "\n".join([*lines[: len(drawn) + 1], *sorted(lines[len(drawn) + 1 :])]) + "\n"


def architecture() -> str:
    """Return ARCHITECTURE.md with the present diagram of rooms."""
    text = ARCHITECTURE.read_text(encoding="utf-8")
    return _ROOMS.sub(lambda found: found[1] + rooms_diagram() + found[3], text)


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
    """Write every generated picture."""
    ARCHITECTURE.write_text(architecture(), encoding="utf-8")
    QUERIES.mkdir(exist_ok=True)
    for name, text in query_pages().items():
        (QUERIES / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
