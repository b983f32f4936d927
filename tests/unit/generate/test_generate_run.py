"""Determinism, clean directories, progress and errors of the generator."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from caudal.errors import OutputError, UsageError
from caudal.generate import generate
from caudal.generate.dice import Dice
from caudal.generate.generator import _sheets
from caudal.generate.sheet import chunks

TINY = 0.0005


def digests(app: str, seed: int, out: Path) -> dict[str, str]:
    files = generate(app, scale=TINY, seed=seed, out=out)
    return {file.path.name: digest(file.path) for file in files}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("app", ["movies", "books"])
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(
    app: str, tmp_path: Path
) -> None:
    first = digests(app, 1, tmp_path / "first")
    assert digests(app, 1, tmp_path / "again") == first
    other = digests(app, 2, tmp_path / "other")
    assert all(other[name] != first[name] for name in first)


def test_what_is_generated_is_reported(tmp_path: Path) -> None:
    heard: list[tuple[str, int, int]] = []
    files = generate(
        "books", scale=TINY, seed=1, out=tmp_path, progress=lambda *step: heard.append(step)
    )
    assert [(file.table, file.rows) for file in files] == [
        ("books_data", 106),
        ("Books_rating", 1500),
    ]
    assert [file.bytes for file in files] == [file.path.stat().st_size for file in files]
    assert heard == [("books_data.csv", 106, 106), ("Books_rating.csv", 1500, 1500)]


@pytest.mark.parametrize("broken", ["books_data.csv", "Books_rating.csv"])
def test_an_interrupt_leaves_no_file(broken: str, tmp_path: Path) -> None:
    def interrupt(name: str, done: int, total: int) -> None:
        if name == broken:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate("books", scale=TINY, seed=1, out=tmp_path, progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_the_old_files_alone(tmp_path: Path) -> None:
    def interrupt(name: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    before = digests("books", 1, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        generate("books", scale=TINY, seed=2, out=tmp_path, progress=interrupt)
    files = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in tmp_path.iterdir()
    }
    assert files == before


def test_chunks_are_small_whatever_the_scale() -> None:
    for app in ("movies", "books"):
        for sheet in _sheets(app, 50.0, Dice(1)):
            rows, content = next(chunks(sheet, Dice(1)))
            assert rows == sheet.chunk_rows < sheet.rows
            assert len(content) < 8_000_000


def test_the_size_of_a_chunk_does_not_show_in_the_bytes() -> None:
    sheet = _sheets("movies", 0.1, Dice(1))[0]
    index = np.arange(1_000, 1_200, dtype=np.int64)
    together = [column.to_pylist() for column in sheet.columns(index)]
    apart = [
        a.to_pylist() + b.to_pylist()
        for a, b in zip(sheet.columns(index[:77]), sheet.columns(index[77:]), strict=True)
    ]
    assert together == apart


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf"), 1e6])
def test_a_scale_out_of_range_is_an_error(scale: float, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="scale must be above 0"):
        generate("movies", scale=scale, seed=1, out=tmp_path)


def test_an_unknown_application_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="choose one of: movies, books"):
        generate("films", scale=1, seed=1, out=tmp_path)


def test_a_directory_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot write to"):
        generate("movies", scale=TINY, seed=1, out=tmp_path / "file")


@pytest.mark.parametrize("scale", [1e-9, 1e-5, 1e-4])
def test_the_smallest_scales_work(scale: float, tmp_path: Path) -> None:
    assert all(
        file.rows
        for app in ("movies", "books")
        for file in generate(app, scale=scale, seed=1, out=tmp_path)
    )
