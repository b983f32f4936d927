"""Python processes of Spark: which code they use, and the folder that they make."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from caudal.spark import bootstrap, shipping
from caudal.spark.fingerprint import fingerprint

AGAIN = """
import importlib.util, json, sys

place, wanted, archives = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:]
spec = importlib.util.spec_from_file_location("sent", place)
bootstrap = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bootstrap)
for archive in archives:
    refusal, tasks = bootstrap._loaded_tasks(wanted, archive)
    print(refusal or tasks.__file__)
"""


@pytest.mark.parametrize("has_spark", [True, False])
def test_a_process_that_loaded_other_code_uses_the_shipped_code_later(
    has_spark: bool, tmp_path: Path
) -> None:
    """Spark uses the Python processes of a session again, so a remedy must reach these too."""
    old, shipped = tmp_path / "old" / "caudal", tmp_path / "shipped"
    (old / "spark").mkdir(parents=True)
    (old / "__init__.py").write_text("")
    if has_spark:
        (old / "spark" / "fingerprint.py").write_text(
            f"def fingerprint(): return {{**{fingerprint()}, 'caudal': '0'}}"
        )
    (shipped / "caudal").mkdir(parents=True)
    (shipped / "caudal" / "caudal").symlink_to(Path(shipping.__file__).parents[1])
    (tmp_path / "other").symlink_to(shipped)
    given = [str(bootstrap.__file__), json.dumps(fingerprint()), "", "shipped", "other", "shipped"]
    found = subprocess.run(
        [sys.executable, "-c", AGAIN, *given],
        env={**os.environ, "PYTHONPATH": str(old.parent)},
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    refusal, *loaded = found.stdout.splitlines()
    assert refusal.endswith("or add --ship")
    assert loaded == [f"{shipped}/caudal/caudal/spark/tasks.py"] * 3


def test_the_folder_of_a_process_is_its_own_and_goes_with_it(tmp_path: Path) -> None:
    """Also if there is something with the name that it might have been expected to have."""
    made = """
import os, sys
from pathlib import Path
place = Path(sys.argv[1])
(place / f"caudal-{os.getpid()}").symlink_to(place.parent)
from caudal.spark.tasks import _spill_folder
folder = _spill_folder()
assert folder == _spill_folder()
assert folder.parent == place and not folder.is_symlink() and not list(folder.iterdir())
(folder / "spilled").write_bytes(b"1")
print(oct(folder.stat().st_mode & 0o777))
"""
    given = tmp_path / "given"
    given.mkdir()
    environment = {**os.environ, "SPARK_LOCAL_DIRS": f"{given},/elsewhere"}
    found = subprocess.run(
        [sys.executable, "-c", made, str(given)],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout.split() == ["0o700"]
    assert [path.is_symlink() for path in given.iterdir()] == [True]
