"""Loads through real gateways, in one process: what is loaded, skipped, refused and shared."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import msgspec
import pytest
from tests.harness.cluster_loads import SMALL, cluster_load, cluster_order, shelf_of, stored_rows
from tests.harness.memory_cluster import Cluster, cluster, fair
from tests.harness.shelves import (
    SALES,
    load_files,
    sales_app,
    sales_loader,
    write_sales,
    write_shops,
)
from tests.harness.waiting import until

from caudal.client.http import HttpGateways
from caudal.client.submit import Watching
from caudal.client.upkeep import take_care
from caudal.datasets.commits import open_contents
from caudal.datasets.files import read_file
from caudal.datasets.parquet import read_rows
from caudal.datasets.vacuum import vacuum
from caudal.errors import ApplicationError, DataError, JobError, RejectedRowError, UsageError
from caudal.formats.batch import BatchHeader
from caudal.formats.job import Job
from caudal.formats.loads import UpkeepRequest
from caudal.formats.replies import JobStatus
from caudal.jobs import objects
from caudal.store import MemoryStore
from caudal.store.port import entries, folder_names


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    with cluster(gateways=2) as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_shops(tmp_path)
    for number in range(4):
        write_sales(tmp_path, f"s{number}.csv", range(10 * number, 10 * number + 9))
    return tmp_path


def test_a_load_has_the_rows_of_an_embedded_load(running: Cluster, folder: Path) -> None:
    sales, shops = ["s0.csv", "s1.csv"], ["shops.csv"]
    order = cluster_order(folder, dataset="equal", sales=sales, shops=shops)
    report = cluster_load(running.gateway, order)
    assert (report.version, report.rows, report.rejects.total) == (1, 20, 2)
    with sales_loader(MemoryStore()) as loader:
        load_files(loader, folder, sales=sales, shops=shops)
        store = loader.tools.store
        contents = open_contents(store)
    place = shelf_of(running.store, name="equal")
    assert place.contents().head.tables == contents.head.tables
    for table, held in contents.tables.items():
        rows = read_rows(read_file(store, table, file) for file in held)
        here = place.contents().tables[table]
        mine = read_rows(read_file(place.below, table, file) for file in here)
        assert mine.equals(rows), table
    assert len(place.contents().tables["sales"]) > 2  # small batches


class Noting(Watching):
    """Notes the ids of jobs."""

    def __init__(self) -> None:
        self.jobs: list[str] = []

    def began(self, job_id: str, sizes: Mapping[str, int | None], status: JobStatus) -> None:
        self.jobs.append(job_id)


def test_loads_go_to_different_gateways(running: Cluster, folder: Path) -> None:
    noting = Noting()
    for number in range(8):
        order = cluster_order(folder, dataset=f"spread-{number}", sales=["s0.csv"])
        cluster_load(running.gateway, order, watching=noting)
    asked = [running.asked_about(job_id) for job_id in noting.jobs]
    assert asked == [[crc32(job_id.encode()) % 2] for job_id in noting.jobs]
    assert [0] in asked
    assert [1] in asked


def ids(running: Cluster, name: str) -> list[object]:
    return [row["id"] for row in stored_rows(shelf_of(running.store, name=name), "sales")]


def numbers(*files: int) -> list[int]:
    return [10 * file + n for file in files for n in range(9)]


def test_an_append_and_the_same_load_again(running: Cluster, folder: Path) -> None:
    first = cluster_order(folder, dataset="twice", sales=["s0.csv"])
    assert cluster_load(running.gateway, first).version == 1
    again = cluster_load(running.gateway, first)
    assert (again.version, again.newest) == (None, 1)
    assert [one.told().rpartition("/")[2] for one in again.skipped] == [
        "s0.csv skipped: version 1 loaded it"
    ]
    both = cluster_order(folder, dataset="twice", sales=["s0.csv", "s1.csv"])
    report = cluster_load(running.gateway, both)
    assert (report.version, report.rows, len(report.skipped)) == (2, 9, 1)
    assert ids(running, "twice") == numbers(0, 1)


def test_a_file_that_has_changed_is_refused(running: Cluster, folder: Path) -> None:
    cluster_load(running.gateway, cluster_order(folder, dataset="changed", sales=["s0.csv"]))
    write_sales(folder, "s0.csv", range(3))
    order = cluster_order(folder, dataset="changed", sales=["s0.csv"])
    with pytest.raises(UsageError, match=r"s0.csv has changed since version 1.*add --again"):
        cluster_load(running.gateway, order)
    assert cluster_load(running.gateway, replace(order, again=True)).version == 2


def test_a_file_that_changes_while_it_is_sent(running: Cluster, folder: Path) -> None:
    order = cluster_order(folder, dataset="moving", sales=["s0.csv"])

    class Changing(Watching):
        def began(self, job_id: str, sizes: object, status: object) -> None:
            write_sales(folder, "s0.csv", range(30))

    with pytest.raises(DataError, match=r"s0.csv changed while it was loaded"):
        cluster_load(running.gateway, order, watching=Changing())
    assert not shelf_of(running.store, name="moving").exists() or not ids(running, "moving")


def test_a_broken_file_fails_the_load_and_says_why(running: Cluster, folder: Path) -> None:
    (folder / "bad.csv").write_text("id,amount\n1,2\n")
    order = cluster_order(folder, dataset="broken", sales=["bad.csv"])
    with pytest.raises(JobError, match=r"failed: .*bad.csv.*day"):
        cluster_load(running.gateway, order)
    assert not shelf_of(running.store, name="broken").exists()


def test_another_application_and_changed_sql_are_refused(running: Cluster, folder: Path) -> None:
    cluster_load(running.gateway, cluster_order(folder, dataset="own", sales=["s0.csv"]))
    other = replace(sales_app(), name="other")
    with pytest.raises(UsageError, match=r"own holds a dataset of sales, not of other.*--dataset"):
        cluster_load(
            running.gateway, cluster_order(folder, dataset="own", app=other, sales=["s1.csv"])
        )
    new_sql = sales_app(SALES.replace("DECIMAL(9, 2)", "DECIMAL(9, 3)"))
    with pytest.raises(UsageError, match=r"table sales changed since own was made.*--dataset NEW"):
        cluster_load(
            running.gateway, cluster_order(folder, dataset="own", app=new_sql, sales=["s1.csv"])
        )


def test_types_that_delta_lacks_are_refused(running: Cluster, folder: Path) -> None:
    odd = sales_app(SALES.replace("AS INTEGER", "AS UINTEGER"))
    order = cluster_order(folder, dataset="odd", app=odd, sales=["s0.csv"])
    with pytest.raises(ApplicationError, match=r'write CAST\("id" AS BIGINT\)'):
        cluster_load(running.gateway, order)
    assert not shelf_of(running.store, name="odd").exists()


def test_a_strict_load_fails_and_a_tolerant_one_follows(running: Cluster, folder: Path) -> None:
    order = cluster_order(folder, dataset="strict", sales=["s0.csv"])
    strict = replace(order, options=msgspec.structs.replace(SMALL, strict=True))
    for _ in range(2):  # the job that failed is no hindrance
        with pytest.raises(RejectedRowError, match="id is not a number"):
            cluster_load(running.gateway, strict)
    assert cluster_load(running.gateway, order).version == 1
    assert ids(running, "strict") == numbers(0)


def test_a_client_that_was_killed_is_followed_by_the_same_command(
    running: Cluster, folder: Path
) -> None:
    order = cluster_order(folder, dataset="killed", sales=["s0.csv", "s1.csv"])

    class Dying(Watching):
        def ended(self, table: str) -> None:
            raise KeyboardInterrupt

    running.working.clear()
    try:
        with pytest.raises(KeyboardInterrupt):
            cluster_load(running.gateway, order, watching=Dying())
        before = len(puts(running))
        with pytest.raises(KeyboardInterrupt):
            cluster_load(running.gateway, order, watching=Dying())
        assert len(puts(running)) == before  # all batches had arrived
    finally:
        running.working.set()
    report = cluster_load(running.gateway, order)
    assert report.newest == 1
    assert ids(running, "killed") == numbers(0, 1)


def puts(running: Cluster) -> list[tuple[str, str]]:
    asked = [one for server in running.servers for one in server.unreliable.asked]
    return [one for one in asked if one[0] == "PUT" and "/batches/" in one[1]]


def test_answers_that_are_lost_change_nothing(running: Cluster, folder: Path) -> None:
    seen: set[tuple[str, str]] = set()

    def lose_once(method: str, path: str) -> int | None:
        if (method, path) in seen or "/status" in path:
            return None
        seen.add((method, path))
        return 503

    for server in running.servers:
        server.unreliable.judge = lose_once
    try:
        order = cluster_order(folder, dataset="lost", sales=["s0.csv", "s1.csv"])
        assert cluster_load(running.gateway, order).version == 1
    finally:
        for server in running.servers:
            server.unreliable.judge = fair
    assert ids(running, "lost") == numbers(0, 1)


def test_two_people_load_at_once(running: Cluster, folder: Path) -> None:
    orders = [
        cluster_order(folder, dataset="race", sales=files)
        for files in (["s0.csv", "s1.csv"], ["s1.csv", "s2.csv"], ["s3.csv"])
    ]
    running.working.clear()  # all are decided before any is committed
    with ThreadPoolExecutor(3) as pool:
        loads = [pool.submit(cluster_load, running.gateway, order) for order in orders]
        until(lambda: len(ends(running, "race")) == 3)
        running.working.set()
        reports = [one.result() for one in loads]
    assert sorted(ids(running, "race"), key=str) == sorted(numbers(0, 1, 2, 3), key=str)
    assert {one.version for one in reports} == {1, 2, 3}
    skipped = [one.told() for report in reports for one in report.skipped]
    assert len(skipped) == 1
    assert "s1.csv skipped: version" in skipped[0]


def ends(running: Cluster, dataset: str) -> list[str]:
    """Return the jobs that load into a dataset and have sent all of it."""
    found = []
    for name in folder_names(running.store, "jobs/"):
        job: Job = objects.job_of(objects.job_bytes(running.store, name), name)
        ended = [one for one in entries(running.store, f"jobs/{name}/") if "end.json" in one.key]
        if job.request.load and job.request.load.dataset == dataset and ended:
            found.append(name)
    return found


def test_a_vacuum_that_deletes_files_of_a_load_makes_it_begin_again(
    running: Cluster, folder: Path
) -> None:
    cluster_load(running.gateway, cluster_order(folder, dataset="swept", sales=["s0.csv"]))
    place = shelf_of(running.store, name="swept")
    order = cluster_order(folder, dataset="swept", sales=["s1.csv"])
    swept: list[int] = []

    class Sweeping(Watching):
        def sent(self, table: str, batch: BatchHeader) -> None:
            """Delete the files of the first batch before the table has ended."""
            if batch.number == 0 and not swept:
                until(has_more_files)
                swept.append(vacuum(place.below, 10.0**11, keep=0.0, grace=0.0).files)

    def has_more_files() -> bool:
        found = [one for one in entries(place.below, "tables/sales/") if "parquet" in one.key]
        return len(found) > len(place.contents().tables["sales"])

    report = cluster_load(running.gateway, order, watching=Sweeping())
    assert swept
    assert swept[0] > 0
    assert report.version == 3  # the vacuum is version 2
    assert ids(running, "swept") == numbers(0, 1)


def test_compaction_and_vacuum_are_done_by_workers(running: Cluster, folder: Path) -> None:
    for name in ("s0.csv", "s1.csv"):
        cluster_load(running.gateway, cluster_order(folder, dataset="many", sales=[name]))
    place = shelf_of(running.store, name="many")
    before = len(place.contents().tables["sales"])
    with HttpGateways(running.addresses) as gateways:
        merged = take_care(UpkeepRequest("many", compact_bytes=64 << 20), gateways)
        assert (merged.version, merged.before > merged.after) == (3, True)
        assert ids(running, "many") == numbers(0, 1)
        with pytest.raises(UsageError, match="there is no dataset other"):
            take_care(UpkeepRequest("other", compact_bytes=1 << 20), gateways)
    for wrong in (UpkeepRequest("many", compact_bytes=1 << 40), UpkeepRequest("many", None, -1.0)):
        with (
            HttpGateways(running.addresses) as gateways,
            pytest.raises(UsageError, match=r"cannot be made|cannot be negative"),
        ):
            take_care(wrong, gateways)
    assert before > len(place.contents().tables["sales"]) == 1
    with HttpGateways(running.addresses) as gateways:
        swept = take_care(UpkeepRequest("many", keep_seconds=0, grace_seconds=0), gateways)
    assert swept.version == 4
    assert swept.deleted >= before
    assert ids(running, "many") == numbers(0, 1)
