"""All books queries over a dataset of the cluster: first, again, and after an append of 1%."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

from bench.cluster.runs import Bench, Run, cluster, embedded, require_equal
from bench.cluster.whole import warm
from bench.datasets import ROOT, dataset, total_bytes
from bench.tables import Table, met
from caudal.application import find_application
from caudal.datasets.cluster_place import locate
from caudal.embedded.dataset_load import open_loader
from caudal.embedded.dataset_sources import file_sources
from caudal.files.sources import Sources
from caudal.formats.tokens import NOBODY
from caudal.kernels.csv import read_header, whole_bytes
from caudal.store import open_store

_PART = 100  # an append has one of so many rows
_AGAIN, _APPENDED = 0.15, 0.3


def measure(scale: float, repeats: int) -> list[Table]:
    folder = dataset("books", scale)
    first, again, appended = list[Run](), list[Run](), list[Run]()
    expected = embedded(folder).answers
    with cluster() as bench, tempfile.TemporaryDirectory(dir=ROOT) as place:
        warm(bench)
        more = _append_of(folder, Path(place))
        for number in range(repeats):
            name = f"shelf{number}"
            _load(bench, name, folder)
            first.append(_ask(bench, name))
            again.append(_ask(bench, name))
            for run in (first[-1], again[-1]):
                require_equal("the dataset", run.answers, expected)
            _load(bench, name, folder, more)
            appended.append(_ask(bench, name))
    head = ["question", "median s", "of the first", "target", "met"]
    rows = [
        ["the first time", f"{_middle(first):.2f}", "", "", ""],
        _row("the same again", again, first, _AGAIN),
        _row("after an append of 1%", appended, first, _APPENDED),
    ]
    title = f"five queries over a dataset of {total_bytes(folder) / 1e6:,.0f} MB of CSV"
    return [Table(f"{title}, the client's start included", head, rows)]


def _row(name: str, runs: Sequence[Run], first: Sequence[Run], most: float) -> list[str]:
    ratio = _middle(runs) / _middle(first)
    return [name, f"{_middle(runs):.2f}", f"{ratio:.3f}", f"≤ {most}", met(ratio <= most)]


def _middle(runs: Sequence[Run]) -> float:
    return median(run.seconds for run in runs)


def _ask(bench: Bench, name: str) -> Run:
    return bench.run(["submit", "books", "--dataset", name, *bench.gateway])


def _load(bench: Bench, name: str, folder: Path, reviews: Path | None = None) -> None:
    """Load all files, or some more reviews, into a dataset of the cluster."""
    app = find_application("books")
    given = {"reviews": [str(reviews)]} if reviews else {}
    tables = [one for one in app.tables if reviews is None or one.name == "reviews"]
    store = open_store(str(bench.real.folder / "store"))
    with open_loader(app, name, locate(store, NOBODY, name).below) as loader:
        loader.load(file_sources(Sources(folder, given), tables))


def _append_of(folder: Path, place: Path) -> Path:
    """Write a file with the first hundredth of the reviews, whole records."""
    path = place / "more.csv"
    with (folder / "Books_rating.csv").open("rb") as file:
        data = np.frombuffer(file.read(total_bytes(folder) // _PART), np.uint8)
    found = read_header(data, path.name, final=False)
    assert found is not None
    header, size = found
    path.write_bytes(data[: size + whole_bytes(data[size:].copy(), header)].tobytes())
    return path
