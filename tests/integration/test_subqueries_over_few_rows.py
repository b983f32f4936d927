"""A comparison with a subquery over few rows does not bound the sums around it.

DuckDB's rule `statistics_propagation` takes the rows of such a subquery's table for those of the
join with it. So it takes a sum for smaller than it is, and HAVING drops groups (2.0.0; seed 512272
of the simulation).
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from caudal.embedded import cleaners
from caudal.files.sources import Sources
from caudal.local.engines import run_with
from caudal.model import Application, Query, Table
from caudal.run_options import IN_PROCESS, Engine

ROWS = [(place % 5, place % 10 + 1, place) for place in range(200)]
COMPARED: dict[str, tuple[str, Callable[[int, list[int]], bool]]] = {
    "is greater": ("r > (SELECT min(w) FROM few)", lambda r, few: r > min(few)),
    "is greater than a mean": (
        "r > (SELECT avg(w) FROM few)",
        lambda r, few: r > sum(few) / len(few),
    ),
    "is equal": ("r % 2 = (SELECT min(w) FROM few)", lambda r, few: r % 2 == min(few)),
    "is greater than any": ("r > ANY (SELECT w FROM few)", lambda r, few: r > min(few)),
    "is greater than all": ("r >= ALL (SELECT w FROM few)", lambda r, few: r >= max(few)),
    "is in": ("r % 3 IN (SELECT w FROM few)", lambda r, few: r % 3 in few),
    "exists": ("EXISTS (FROM few WHERE w < r)", lambda r, few: min(few) < r),
}
LEAST = (3, 60)


def table(name: str, *columns: str) -> Table:
    listed = ", ".join(f"{one}::INTEGER AS {one}" for one in columns)
    sql = f"SELECT {listed}, NULL::VARCHAR AS reject FROM raw"
    return Table(name, (f"{name}.csv",), columns, sql, f"{name}.sql")


@pytest.mark.parametrize("few", [[0], [0, 1, 2]], ids=["one row", "three rows"])
def test_no_group_is_lost_beside_a_wide_table(
    few: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a wide table is cleaned, another rule is off too."""
    monkeypatch.setattr(cleaners, "_MANY_COLUMNS", 0)
    test_no_group_is_lost(few, Engine.EMBEDDED, tmp_path)


@pytest.mark.parametrize("engine", IN_PROCESS)
@pytest.mark.parametrize("few", [[0], [0, 1, 2]], ids=["one row", "three rows"])
def test_no_group_is_lost(few: list[int], engine: Engine, tmp_path: Path) -> None:
    rows = "".join(f"{g},{q},{r}\n" for g, q, r in ROWS)
    (tmp_path / "many.csv").write_text(f"g,q,r\n{rows}")
    (tmp_path / "few.csv").write_text("w\n" + "".join(f"{one}\n" for one in few))
    asked = {
        f"q{number}": (condition, holds, least)
        for number, (condition, holds, least) in enumerate(
            (*one, least) for one in COMPARED.values() for least in LEAST
        )
    }
    texts = [
        Query(
            name,
            name,
            f"SELECT g, sum(q) AS total FROM many WHERE {condition} GROUP BY g "
            f"HAVING sum(q) > {least} ORDER BY g",
            f"{name}.sql",
        )
        for name, (condition, _, least) in asked.items()
    ]
    tables = (table("many", "g", "q", "r"), table("few", "w"))
    app = Application("few", "few", tmp_path, tables, tuple(texts))
    found = run_with(engine, app, Sources(tmp_path))
    for name, (condition, holds, least) in asked.items():
        kept = [(g, q) for g, q, r in ROWS if holds(r, few)]
        sums = {g: sum(q for one, q in kept if one == g) for g in range(5)}
        wanted = [(g, total) for g, total in sums.items() if total > least]
        answer = found[name].table.to_pylist()
        assert [(one["g"], int(one["total"])) for one in answer] == wanted, condition
