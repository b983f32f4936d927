"""Python processes of Spark: the folder that they make."""

import os
import subprocess
import sys
from pathlib import Path


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
