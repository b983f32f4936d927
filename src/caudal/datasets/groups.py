"""Which files of a table are read together: small ones of one version. A pure decision.

A group never spans versions, so a later load changes no group. A compaction makes new files, and
so new groups.
"""

from collections.abc import Sequence

from caudal.datasets.contents import HeldFile

GROUP_BYTES = 8 << 20
GROUP_ROWS = 500_000


def group_files(
    files: Sequence[HeldFile], most_bytes: int = GROUP_BYTES, most_rows: int = GROUP_ROWS
) -> list[tuple[HeldFile, ...]]:
    """Return the files in groups, in order. A larger file is a group of its own."""
    groups: list[list[HeldFile]] = []
    for file in files:
        last = groups[-1] if groups else []
        fits = (
            sum(one.bytes for one in last) + file.bytes <= most_bytes
            and sum(one.rows for one in last) + file.rows <= most_rows
        )
        if last and last[0].added == file.added and fits:
            last.append(file)
        else:
            groups.append([file])
    return [tuple(group) for group in groups]
