"""The versions of everything that decides the rows and the bytes of a task's output.

They are recorded in job.json and are a part of the key of every shared map output
(jobs/shared_maps.py). A worker of other versions does not compute shared outputs of that job.
"""

from functools import cache
from importlib import metadata, resources

from caudal.formats import mapped
from caudal.formats.digest import digest
from caudal.kernels.hashing import HASH_VERSION
from caudal.kernels.sources import digest_of_sources
from caudal.version import __version__


@cache
def engine_versions() -> dict[str, str]:
    """Return the versions of this process, by name."""
    lexicon = resources.files("caudal.kernels.sentiment").joinpath("lexicon.tsv").read_bytes()
    return {
        "caudal": __version__,
        "hash": str(HASH_VERSION),
        "kernels": digest(digest_of_sources().encode() + lexicon),
        "duckdb": metadata.version("duckdb"),
        "pyarrow": metadata.version("pyarrow"),
        "mapped": mapped.MAGIC.decode(),
    }
