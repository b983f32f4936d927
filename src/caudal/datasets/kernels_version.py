"""The version of everything that decides what a kernel gives: its sources and the lexicon."""

from functools import cache
from importlib import resources

from caudal.formats.digest import digest
from caudal.kernels.sources import digest_of_sources


@cache
def kernels_version() -> str:
    """Return a digest that changes with anything that kernels give."""
    lexicon = resources.files("caudal.kernels.sentiment").joinpath("lexicon.tsv").read_bytes()
    return digest(digest_of_sources().encode() + lexicon)
