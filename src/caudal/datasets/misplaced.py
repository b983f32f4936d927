"""What is in a folder in which somebody looks for a dataset and finds none."""

from pathlib import Path

from caudal.datasets import keys

_LEVELS = 4  # from a file of a table up to its dataset


def found_instead(folder: Path) -> str:
    """Return what to do about a folder without a dataset; empty if nothing is known."""
    for parent in list(folder.absolute().parents)[:_LEVELS]:
        if (parent / keys.DATASET).is_file():
            return f"that is a part of a dataset: give its folder, {parent}"
    if folder.is_file():
        return "that is a file: give the folder of a dataset"
    if any(folder.glob("datasets/*/events")):
        return f"it holds series: see `caudal series list --store {folder}`"
    inside = sorted(path.parent.name for path in folder.glob(f"*/{keys.DATASET}"))
    if inside:
        return f"its folder {inside[0]} is one: give {folder / inside[0]}"
    return ""
