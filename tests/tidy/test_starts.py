"""What each command loads: a start is as long as its imports, and they grow unseen.

Nothing that is not listed here is loaded. Add a package only where a command can do nothing without
it; import it in the function that needs it where it can.
"""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from caudal.kernels.objects import fitting_code

ROOT = Path(__file__).parents[2]
COMMAND = {"annotated_doc", "caudal", "msgspec", "shellingham", "typer", "typing_extensions"}
DATA = {"_duckdb", "cloudpickle", "duckdb", "numpy", "pyarrow", "xxhash"}
ASKING = COMMAND | DATA | {"rich"}
PROCESS = COMMAND | DATA | {"prometheus_client"}
HTTP = {"anyio", "click", "h11", "idna", "starlette", "uvicorn"}

NOT_ASKED_FOR = {  # by a SELECT that reads no file
    "caudal.embedded.loading",
    "caudal.files.inputs",
    "caudal.files.pieces",
    "caudal.kernels.csv",
    "caudal.local.split",
    "caudal.sql.graph",
}

_OF_THE_MACHINE = (
    *("__main__", "__mp_main__", "_sysconfigdata", "_distutils_hack", "_cython", "cython_runtime"),
    *("sitecustomize", "usercustomize"),
)

pytestmark = pytest.mark.skipif(
    fitting_code() is None, reason=f"{platform.machine()} compiles kernels with numba"
)


def loaded(arguments: list[str], folder: Path, until: str = "") -> set[str]:
    """The modules that a command has loaded when it ends, or when it logs this text."""
    told = folder / "told"
    done = subprocess.run(
        [sys.executable, "-m", "tests.tidy.telling", str(told), until, *arguments],
        cwd=ROOT,
        env={**os.environ, "XDG_CACHE_HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.exists(), done.stderr
    return set(told.read_text().split())


def packages(modules: set[str]) -> set[str]:
    tops = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names
    return {top for top in tops if not top.startswith(_OF_THE_MACHINE) and "__mypyc" not in top}


def rooms(modules: set[str]) -> set[str]:
    """The rooms of our own package that were entered."""
    return {name.split(".")[1] for name in modules if name.startswith("caudal.")}


def test_the_version_loads_nothing(tmp_path: Path) -> None:
    modules = loaded(["--version"], tmp_path)
    assert packages(modules) == {"caudal"}
    assert rooms(modules) == {"cli", "errors", "late", "version"}


def test_asking_loads_no_cluster_and_no_parser(tmp_path: Path) -> None:
    modules = loaded(["sql", "SELECT 1"], tmp_path)
    assert packages(modules) <= ASKING
    assert "pyarrow.compute" not in modules
    assert not {"tasks", "store", "broker", "gateway", "worker", "client"} & rooms(modules)
    assert not modules & NOT_ASKED_FOR


def test_an_application_that_was_run_before_is_run_without_a_parser(tmp_path: Path) -> None:
    case = ROOT / "src" / "caudal" / "apps" / "movies" / "cases" / "rating_ties"
    run = ["run", "movies", "--data", str(case), "--quiet", "--format", "csv"]
    run += ["--out", str(tmp_path / "answers")]
    assert "sqlglot" in packages(loaded(run, tmp_path))
    modules = loaded(run, tmp_path)
    assert packages(modules) <= ASKING | {"dateutil"}  # Arrow loads it where it is installed
    assert not {"tasks", "store", "broker", "gateway", "worker", "client"} & rooms(modules)


def test_a_dataset_that_was_asked_before_is_asked_without_a_parser(tmp_path: Path) -> None:
    case = ROOT / "src" / "caudal" / "apps" / "movies" / "cases" / "rating_ties"
    shelf = str(tmp_path / "shelf")
    loaded(["load", "movies", "--data", str(case), "--to", shelf, "--quiet"], tmp_path)
    run = ["run", "movies", "--from", shelf, "--quiet", "--format", "csv"]
    run += ["--out", str(tmp_path / "answers")]
    assert "sqlglot" in packages(loaded(run, tmp_path))
    modules = loaded(run, tmp_path)
    assert packages(modules) <= ASKING | {"dateutil"}
    assert "pyarrow.parquet" not in modules
    assert not {"tasks", "broker", "gateway", "worker", "client", "series"} & rooms(modules)


@pytest.mark.parametrize(
    ("kind", "until", "packed"),
    [("worker", "ready", PROCESS), ("gateway", "listening", PROCESS | HTTP)],
)
def test_a_process_of_a_cluster_loads_what_it_needs(
    kind: str, until: str, packed: set[str], tmp_path: Path
) -> None:
    where = ["--store", str(tmp_path / "store"), "--broker", f"embedded:{tmp_path / 'broker'}"]
    port = ["--port", "0"] if kind == "gateway" else []
    modules = loaded([kind, *where, *port], tmp_path, until=until)
    assert packages(modules) <= packed
    assert "series" not in rooms(modules)
