"""A Python of executors that have not installed Caudal."""

import sys
from pathlib import Path

# What tasks of Spark need of a Python. Caudal, DuckDB and other packages are not among them.
SPARKS_OWN = ("pyspark", "py4j", "pyarrow", "numpy", "numpy.libs", "pandas", "dateutil", "six.py")


def python_without_caudal(folder: Path) -> Path:
    """Write a Python that has the packages of Spark only."""
    import pyspark

    (folder / "packages").mkdir()
    for name in SPARKS_OWN:
        (folder / "packages" / name).symlink_to(Path(pyspark.__file__).parents[1] / name)
    python = folder / "python"
    # -S leaves out site-packages. The given PYTHONPATH may name the sources of Caudal.
    python.write_text(f'#!/bin/sh\nPYTHONPATH={folder}/packages exec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    return python
