"""What a user's wrong SQL is told on Spark is what the embedded engine tells."""

from pathlib import Path
from typing import Any

import pytest

import caudal
from caudal.errors import CaudalError
from caudal.spark import frames

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """One value is no number; of several, partitions decide which one is met first."""
    rows = "".join(f"{n % 3},{'x7' if n == 7 else n}\n" for n in range(100))
    (tmp_path / "t.csv").write_text(f"k,v\n{rows}")
    return tmp_path


def told(select: str, data: Path, **engine: Any) -> tuple[type, str]:
    with pytest.raises(CaudalError) as raised:
        caudal.sql(select, data=data, progress=False, **engine).rows()
    return type(raised.value), str(raised.value)


@pytest.mark.parametrize(
    ("select", "reason"),
    [
        ("SELEC k FROM 't.csv'", "syntax error"),
        ("SELECT nix FROM 't.csv'", "not found in FROM clause"),
        ("SELECT nosuch(k) FROM 't.csv'", "does not exist"),
        ("SELECT CAST(v AS INTEGER) AS n FROM 't.csv'", "Could not convert string 'x7' to INT32"),
        (
            "SELECT k, CAST('n' || max(v) AS INTEGER) AS n FROM 't.csv' WHERE k = 1 GROUP BY k",
            "Could not convert string 'nx7' to INT32",
        ),
    ],
    ids=["syntax", "column", "function", "a cast of a map", "a cast of a fold"],
)
def test_an_error_of_sql_is_told_as_by_the_embedded_engine(
    select: str, reason: str, data: Path, session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "MOST_BYTES", -1)  # folds run on executors
    found = told(select, data, engine="spark", spark=session)
    assert found == told(select, data)
    assert reason in found[1]
