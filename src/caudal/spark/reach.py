"""Decides which files executors read themselves."""

from collections.abc import Iterable

from caudal.files.inputs import InputFile
from caudal.files.places import LocalPlace
from caudal.run_options import SparkInputs


def reachable_files(
    files: Iterable[InputFile], inputs: SparkInputs, *, is_local: bool
) -> frozenset[str]:
    """Return the names of the files of which executors read ranges. With `is_local`, executors are
    on this machine; others are not expected to have its files."""
    if inputs is SparkInputs.SENT:
        return frozenset()
    reads_local = is_local or inputs is SparkInputs.SHARED
    return frozenset(
        file.name
        for file in files
        if (reads_local or not isinstance(file.place, LocalPlace)) and file.has_ranges
    )
