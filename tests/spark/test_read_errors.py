"""What an executor cannot read for a moment is read by the next attempt of its task."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import caudal
from caudal.errors import SparkFailedError
from caudal.run_options import SparkOptions
from caudal.spark import bootstrap, frames

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

SELECT = "SELECT categories, count(*) AS n FROM books GROUP BY ALL ORDER BY ALL"


def failing(reader: str, kind: str, marker: Path, times: int) -> Callable[..., Any]:
    """Return a `task_function` whose tasks fail to read so many times; each is noted."""
    real, place = bootstrap.task_function, str(marker)

    def made(*given: Any) -> Any:
        run = real(*given)

        def reading(batches: Any) -> Any:
            from pathlib import Path

            from caudal import errors
            from caudal.spark import tasks

            read = getattr(tasks, reader)

            def fails(*what: Any) -> Any:
                with Path(place).open("a+") as notes:
                    notes.seek(0)
                    if len(notes.read()) < times:
                        notes.write(".")
                        raise getattr(errors, kind)("cannot read it: Input/output error")
                return read(*what)

            setattr(tasks, reader, fails)
            try:
                yield from run(batches)
            finally:
                setattr(tasks, reader, read)

        return reading

    return made


def asked(what: str, generated: Path, folder: Path, session: Any) -> list[dict[str, Any]]:
    """Ask files, or a dataset of them."""
    if what == "files":
        spark = SparkOptions(session, inputs="shared")
        data = generated / "books"
        return caudal.sql(SELECT, "books", data=data, engine="spark", spark=spark).rows()
    caudal.load("books", generated / "books", to=folder / "shelf")
    return caudal.Dataset(folder / "shelf").sql(SELECT, "books", spark=session).rows()


KINDS = pytest.mark.parametrize(
    ("what", "error"),
    [
        ("files", ("read_range", "UnreadableError")),
        ("dataset", ("read_file", "StoreError")),
    ],
)


@KINDS
def test_an_error_that_passes_costs_an_attempt(
    what: str, error: tuple[str, str],
    generated: Path, tmp_path: Path, session: Any, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    marker = tmp_path / "failed"
    monkeypatch.setattr(bootstrap, "task_function", failing(*error, marker, 2))
    monkeypatch.setattr(frames, "LIGHT_BYTES", -1)  # executors read everything
    found = asked(what, generated, tmp_path, session)
    assert marker.read_text() == ".."
    assert found == caudal.sql(SELECT, "books", data=generated / "books").rows()


@KINDS
def test_an_error_that_stays_is_one_line(
    what: str, error: tuple[str, str],
    generated: Path, tmp_path: Path, session: Any, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    marker = tmp_path / "failed"
    monkeypatch.setattr(bootstrap, "task_function", failing(*error, marker, 1000))
    monkeypatch.setattr(frames, "LIGHT_BYTES", -1)
    told = r"^Spark failed: cannot read it: Input/output error$"
    with pytest.raises(SparkFailedError, match=told):
        asked(what, generated, tmp_path, session)
    assert len(marker.read_text()) >= 4
