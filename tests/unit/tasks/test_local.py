"""A run whose progress lies in a store: the same answers, from wherever it was stopped."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from caudal.application import find_application
from caudal.embedded import engine as embedded
from caudal.errors import DataError, QueryError, RejectedRowError, StoreError, UsageError
from caudal.files.sources import Sources
from caudal.formats.job import Job
from caudal.formats.keys import Keys, Task
from caudal.jobs.interfaces import Inputs, MayGoOn
from caudal.local import split
from caudal.local.run import local_run
from caudal.model import Application, Query, RejectedRow, Table
from caudal.results.answers import Answers
from caudal.run_options import RunOptions
from caudal.store import DirectoryStore, MemoryStore, Store
from caudal.store.port import PAGE, Page, entries
from caudal.worker.compute import LocalCompute

BOOKS = find_application("books")
CASE = BOOKS.folder / "cases" / "books_and_reviews_apart"
FEW = RunOptions(threads=2, batch_bytes=150, partitions=2)
SMALL = RunOptions(threads=1, batch_bytes=60, partitions=2)
LITTLE = Application(
    "little",
    "",
    Path(),
    (
        Table(
            "t",
            ("t.csv",),
            ("k", "v"),
            "SELECT k, to_integer(v) AS v, CASE WHEN to_integer(v) IS NULL THEN 'v is no number' "
            "END AS reject FROM raw",
            "t.sql",
        ),
        Table("u", ("u.csv",), ("k",), "SELECT k FROM raw", "u.sql"),
    ),
    (
        Query("sums", "", "SELECT k, sum(v) AS s FROM t GROUP BY k ORDER BY k", "sums.sql"),
        Query("both", "", "SELECT k, v FROM t JOIN u USING (k) ORDER BY ALL", "both.sql"),
    ),
)


class DyingStore(Store):
    """Works until it was asked to create so many objects, and then never again."""

    def __init__(self, store: Store, creates: int) -> None:
        self._store = store
        self._left = creates

    def create(self, key: str, data: bytes | Path, *, lasting: bool = True) -> None:
        if not key.startswith("runs/"):  # the probe
            return self._store.create(key, data, lasting=lasting)
        self._left -= 1
        if self._left < 0:
            raise StoreError("the disk is gone")
        return self._store.create(key, data, lasting=lasting)

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes:
        return self._store.read(key, offset, length)

    def list(
        self, prefix: str, *, recursive: bool = True, after: str = "", limit: int = PAGE
    ) -> Page:
        return self._store.list(prefix, recursive=recursive, after=after, limit=limit)

    def delete(self, key: str, *, lasting: bool = True) -> None:
        self._store.delete(key, lasting=lasting)

    def replace(self, key: str, data: bytes | Path, *, twin: str | None = None) -> str:
        return self._store.replace(key, data, twin=twin)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [f"{'abcdefg'[n * n % 7]},{n}" for n in range(60)]
    rows[17] = rows[31] = "a,none"
    (tmp_path / "t.csv").write_text("\n".join(["k,v", *rows]) + "\n")
    (tmp_path / "u.csv").write_text("k\na\nc\n")
    return tmp_path


def run(
    store: Store,
    app: Application,
    folder: Path,
    options: RunOptions = FEW,
    *,
    resume: bool = False,
    queries: list[str] | None = None,
) -> Answers:
    with local_run(store, "the store", resume=resume) as stored:
        return stored.run(app, Sources(folder), queries, options=options)


def assert_same(found: Answers, expected: Answers) -> None:
    assert list(found) == list(expected)
    for name, result in expected.items():
        assert found[name].table.equals(result.table), name
        assert found[name].title == result.title
    assert list(found.rejects) == list(expected.rejects)
    assert found.rejects.repaired == expected.rejects.repaired


def kept(store: Store) -> list[str]:
    return [entry.key for entry in entries(store, "")]


def test_the_same_answers_as_the_split_engine_and_nothing_left(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    assert_same(run(store, BOOKS, CASE), split.run(BOOKS, Sources(CASE), options=FEW))
    assert kept(store) == []
    assert list((tmp_path / "store").iterdir()) == []


@pytest.mark.long
def test_resumed_after_every_create(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store dies after its k-th object, for every k: no task is done twice, nothing is lost."""
    done: list[str] = []
    real = LocalCompute.run

    def noted(
        self: LocalCompute, job: Job, task: Task, inputs: Inputs, deliveries: int, beat: MayGoOn
    ) -> bytes:
        output = real(self, job, task, inputs, deliveries, beat)
        done.append(f"runs/{Keys(job.id, job.run).output(task)}")
        return output

    monkeypatch.setattr(LocalCompute, "run", noted)
    options = SMALL
    expected = split.run(LITTLE, Sources(data), options=options)
    creates = 0
    while True:
        store = MemoryStore()
        dying = DyingStore(store, creates)
        try:
            answers = run(dying, LITTLE, data, options)
        except StoreError:
            stored = kept(store)
            done.clear()
            assert_same(run(store, LITTLE, data, options, resume=True), expected)
            assert set(done).isdisjoint(stored)
            assert kept(store) == []
            creates += 1
        else:
            assert_same(answers, expected)
            break
    assert creates > 20


def test_an_unfinished_run_is_not_resumed_unasked(data: Path) -> None:
    store = MemoryStore()
    with pytest.raises(StoreError):
        run(DyingStore(store, 9), LITTLE, data)
    with pytest.raises(UsageError, match=r"unfinished run .* add --resume"):
        run(store, LITTLE, data)
    assert run(store, LITTLE, data, queries=["sums"])  # another one is no hindrance
    assert kept(store) != []
    run(store, LITTLE, data, resume=True)
    assert kept(store) == []


@pytest.mark.parametrize("changed", ["t.csv", "u.csv"])
@pytest.mark.parametrize("how", ["other", "longer", "shorter"])
def test_a_file_that_changed_is_said(data: Path, changed: str, how: str) -> None:
    store, path = MemoryStore(), data / changed
    with pytest.raises(StoreError):
        run(DyingStore(store, 22), LITTLE, data, SMALL)
    before = path.read_text()
    text = {
        "other": before.replace("a", "x"),
        "longer": before + before.partition("\n")[2] * 9,
        "shorter": before[: before.index("\n") + 1],
    }[how]
    path.write_text(text)
    with pytest.raises(DataError, match=r"the file changed|a file changed"):
        run(store, LITTLE, data, SMALL, resume=True)
    path.write_text(before)  # the run was kept
    expected = split.run(LITTLE, Sources(data), options=SMALL)
    assert_same(run(store, LITTLE, data, SMALL, resume=True), expected)


def test_a_run_that_is_done_but_not_delivered_is_resumed(data: Path) -> None:
    store = MemoryStore()
    first = local_run(store, "", resume=False).__enter__().run(LITTLE, Sources(data), options=FEW)
    assert_same(run(store, LITTLE, data, resume=True), first)
    assert kept(store) == []


def test_every_rejected_row_in_order_and_strict(data: Path) -> None:
    def all_rejects(engine: str) -> list[RejectedRow]:
        rows: list[RejectedRow] = []
        options = RunOptions(threads=2, batch_bytes=60, reject_sink=rows.append)
        if engine == "stored":
            run(MemoryStore(), LITTLE, data, options)
        else:
            split.run(LITTLE, Sources(data), options=options)
        return rows

    assert all_rejects("stored") == all_rejects("split") != []
    strict, store = RunOptions(threads=2, batch_bytes=60, strict=True), MemoryStore()
    with pytest.raises(RejectedRowError) as bare:
        split.run(LITTLE, Sources(data), options=strict)
    with pytest.raises(RejectedRowError) as stored:
        run(store, LITTLE, data, strict)
    assert str(stored.value) == str(bare.value)
    assert kept(store) == []


def test_a_query_that_fails_ends_the_run_with_its_own_error(data: Path) -> None:
    query = Query("bad", "", "SELECT CAST(k AS INTEGER) AS n FROM t ORDER BY n", "bad.sql")
    app = Application("bad", "", Path(), LITTLE.tables, (query,))
    store = MemoryStore()
    with pytest.raises(QueryError, match="Could not convert string"):
        run(store, app, data)
    assert kept(store) == []


def written(folder: Path, form: str) -> Iterator[Path]:
    """The same rows in other files."""
    for path in list(folder.glob("*.csv")):
        match form:
            case "gz":
                path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
            case "zst":
                packed = pa.compress(path.read_bytes(), codec="zstd", asbytes=True)
                path.with_name(f"{path.name}.zst").write_bytes(packed)
            case "parquet":
                pq.write_table(pa.csv.read_csv(path), path.with_suffix(".parquet"))
        path.unlink()
        yield path


@pytest.mark.parametrize("form", ["gz", "zst", "parquet"])
def test_other_files_are_read_as_the_split_engine_reads_them(data: Path, form: str) -> None:
    list(written(data, form))
    expected = split.run(LITTLE, Sources(data), options=FEW)
    store = MemoryStore()
    with pytest.raises(StoreError):
        run(DyingStore(store, 6), LITTLE, data)
    found = run(store, LITTLE, data, resume=True)
    assert_same(found, expected)
    assert found.rejects.total == 2


def test_globs_and_files_of_several_forms(data: Path) -> None:
    (data / "more.csv.gz").write_bytes(gzip.compress(b"v,k\n100,a\nno,c\n"))
    pq.write_table(pa.table({"k": ["c", None], "v": [7, None], "w": [[1], []]}), data / "x.parquet")
    sources = Sources(data, {"t": ["[tm]*.csv*", "x.parquet"]})
    store = MemoryStore()
    with local_run(store, "", resume=False) as stored:
        found = stored.run(LITTLE, sources, options=FEW)
    assert_same(found, split.run(LITTLE, sources, options=FEW))


def test_an_empty_table(data: Path) -> None:
    (data / "t.csv").write_text("k,v\n")
    pq.write_table(pa.table({"k": pa.array([], pa.string())}), data / "u.parquet")
    (data / "u.csv").unlink()
    expected = embedded.run(LITTLE, Sources(data), options=FEW)
    assert_same(run(MemoryStore(), LITTLE, data), expected)
