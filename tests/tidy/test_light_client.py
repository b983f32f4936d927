"""A client starts quickly: what only plans and computes is not loaded for it."""

import subprocess
import sys

import pytest

HEAVY = {"duckdb", "sqlglot", "pandas", "aio_pika", "obstore", "starlette"}


@pytest.mark.parametrize("module", ["caudal.cli.submit", "caudal.client.client"])
def test_a_client_loads_no_engine(module: str) -> None:
    script = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert HEAVY.isdisjoint(done.stdout.split())
