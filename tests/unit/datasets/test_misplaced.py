"""Somebody looks for a dataset in the wrong folder, and is told where to look."""

import re
from pathlib import Path

import pytest
from tests.harness.datasets import append, new_dataset

from caudal.datasets.shelf import open_shelf
from caudal.errors import UsageError
from caudal.store import DirectoryStore


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    store = DirectoryStore(tmp_path / "home" / "shelf", fsync=False)
    append(store, new_dataset(store), 1)
    return tmp_path / "home" / "shelf"


@pytest.mark.parametrize("inside", ["tables/numbers", "tables", "versions", "dataset.json"])
def test_a_part_of_a_dataset(shelf: Path, inside: str) -> None:
    with pytest.raises(UsageError, match=f"give its folder, {re.escape(str(shelf))}$"):
        open_shelf(str(shelf / inside))


def test_the_folder_above(shelf: Path) -> None:
    with pytest.raises(UsageError, match=f"its folder shelf is one: give {re.escape(str(shelf))}"):
        open_shelf(str(shelf.parent))


def test_a_file_and_a_folder_without_anything(tmp_path: Path) -> None:
    (tmp_path / "reviews.csv").write_text("a\n")
    with pytest.raises(UsageError, match="that is a file: give the folder of a dataset"):
        open_shelf(str(tmp_path / "reviews.csv"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="make one with `caudal load APP --to "):
        open_shelf(str(tmp_path / "empty"))


def test_a_store_of_series(tmp_path: Path) -> None:
    (tmp_path / "datasets" / "rates" / "events").mkdir(parents=True)
    with pytest.raises(UsageError, match="it holds series: see `caudal series list --store "):
        open_shelf(str(tmp_path))
