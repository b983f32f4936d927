"""The versions of everything that decides the rows and the bytes of a task's output.

They are recorded in job.json and are a part of the key of every shared map output
(jobs/shared_maps.py). A worker of other versions does not compute shared outputs of that job.
"""

from functools import cache
from importlib import metadata

from caudal.datasets.kernels_version import kernels_version
from caudal.formats import mapped
from caudal.jobs.levels import written_levels
from caudal.kernels.hashing import HASH_VERSION
from caudal.version import __version__


@cache
def engine_versions() -> dict[str, str]:
    """Return the versions of this process, by name."""
    return {
        "caudal": __version__,
        "hash": str(HASH_VERSION),
        "kernels": kernels_version(),
        "duckdb": metadata.version("duckdb"),
        "pyarrow": metadata.version("pyarrow"),
        "mapped": mapped.MAGIC.decode(),
        **written_levels(),
    }
