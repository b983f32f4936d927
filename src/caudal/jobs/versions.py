"""The versions of everything that the rows of a task's output may depend on (ADR 65).

They are recorded in job.json and are a part of the key of every shared map output
(jobs/shared_maps.py). What a worker of other versions may do is decided in jobs/levels.py.

The release and the sources of the kernels are not among them: both change with every release. If
a release gives other rows, its level `rows` says so.
"""

from functools import cache
from importlib import metadata

from caudal.formats import mapped
from caudal.jobs.levels import written_levels
from caudal.kernels.hashing import HASH_VERSION


@cache
def engine_versions() -> dict[str, str]:
    """Return the versions of this process, by name."""
    return {
        "hash": str(HASH_VERSION),
        "duckdb": metadata.version("duckdb"),
        "pyarrow": metadata.version("pyarrow"),
        "mapped": mapped.MAGIC.decode(),
        **written_levels(),
    }
