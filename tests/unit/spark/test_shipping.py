"""The archive that is sent to executors."""

import importlib.metadata
import os
import sys
import sysconfig
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from caudal.errors import SparkFailedError
from caudal.run_options import SparkOptions
from caudal.spark import shipping
from caudal.spark.bootstrap import _loaded_tasks, task_function
from caudal.spark.fingerprint import fingerprint
from caudal.spark.rows import TaskRows
from caudal.spark.session import SparkSide


def test_the_archive_has_caudal_its_kernels_and_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipping, "_PACKAGES", ("msgspec", "no such package"))
    archive = shipping.kept_archive(tmp_path, "caudal-1")
    written = archive.stat().st_ino
    with zipfile.ZipFile(archive) as held:
        names = set(held.namelist())
    assert {"caudal/caudal/spark/tasks.py", "caudal/caudal/version.py"} <= names
    assert "caudal/caudal/kernels/objects/objects.json" in names
    assert "packages/msgspec/__init__.py" in names
    assert not any(".." in name or "__pycache__" in name for name in names)
    assert shipping.kept_archive(tmp_path, "caudal-1").stat().st_ino == written


def test_old_archives_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipping, "write_archive", lambda path: path.write_bytes(b""))
    for number in range(9):
        shipping.kept_archive(tmp_path, f"caudal-{number}")
    assert len(list(tmp_path.iterdir())) == 3


class Session:
    """A session that notes what is sent to it."""

    sparkContext = None  # noqa: N815

    def __init__(self) -> None:
        self.sent: list[str] = []

    def addArtifacts(self, path: str, *, archive: bool) -> None:  # noqa: N802
        assert archive
        if "caudal-2" in path and not self.sent:
            raise ConnectionResetError
        self.sent.append(path.partition("#")[2])


def test_an_archive_is_sent_once_to_each_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipping, "write_archive", lambda path: path.write_bytes(b""))
    monkeypatch.setattr(shipping, "_private_folder", lambda: tmp_path)
    first, second = Session(), Session()

    def ship(session: Session, name: str) -> None:
        monkeypatch.setattr(shipping, "archive_name", lambda: name)
        made = shipping.shipped_code(SparkSide(session), SparkOptions(session, ship=True))
        assert made.archive == name

    with pytest.raises(SparkFailedError):
        ship(first, "caudal-2")  # what did not arrive is sent again
    for session in (first, first, second):
        ship(session, "caudal-1")
    ship(first, "caudal-2")
    assert (first.sent, second.sent) == (["caudal-1", "caudal-2"], ["caudal-1"])


@pytest.mark.parametrize("what", ["a package", "the Python", "the machine", "the kernels"])
def test_an_archive_of_something_else_has_another_name(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the sources of Caudal are the same."""
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "x86-64-v3.code").write_bytes(b"1")
    monkeypatch.setattr(shipping, "_ROOT", tmp_path)
    name = shipping.archive_name.__wrapped__
    before = name()
    assert name() == before
    if what == "a package":
        monkeypatch.setattr(importlib.metadata, "version", lambda _: "99.1")
    elif what == "the Python":
        monkeypatch.setattr(sys, "implementation", SimpleNamespace(cache_tag="other"))
    elif what == "the machine":
        monkeypatch.setattr(sysconfig, "get_platform", lambda: "other")
    else:
        (tmp_path / "kernels" / "x86-64-v3.code").write_bytes(b"2")
    assert name() != before


def test_archives_are_kept_where_only_the_user_may_change_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "caudal" / "spark").mkdir(parents=True, mode=0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = shipping._private_folder.__wrapped__
    assert folder() == tmp_path / "caudal" / "spark"
    assert folder().stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(os, "getuid", lambda: -1)  # it is another user's
    other = folder()
    assert other not in (tmp_path, folder())
    assert other.stat().st_mode & 0o777 == 0o700


def test_code_is_used_only_if_every_version_agrees() -> None:
    assert {"caudal", "duckdb", "pyarrow"} <= fingerprint().keys()
    refusal, tasks = _loaded_tasks(fingerprint(), "")
    assert refusal == ""
    assert tasks.__name__ == "caudal.spark.tasks"
    for name in fingerprint():
        refusal, tasks = _loaded_tasks({**fingerprint(), name: "other"}, "")
        assert f"{name} {fingerprint()[name]} not other" in refusal
        assert tasks is None


@pytest.mark.parametrize(
    ("differing", "archive", "remedy"),
    [
        (["caudal"], "", "install caudal 9 on every executor, or add --ship"),
        (["kernels", "code"], "", "install caudal 9 on every executor, or add --ship"),
        (["code"], "shipped", "install caudal 9 on every executor"),
        (["duckdb"], "", "install duckdb 8 on every executor"),
        (["caudal", "duckdb"], "", "install caudal 9 and duckdb 8 on every executor"),
        (
            ["duckdb"],
            "shipped",
            "install duckdb 8 on every executor, since its own packages come before shipped ones",
        ),
        (
            ["duckdb", "pyarrow"],
            "shipped",
            "install duckdb 8 and pyarrow 7 on every executor, since its own packages come before "
            "shipped ones",
        ),
        (["pyarrow", "code"], "", "install caudal 9 and pyarrow 7 on every executor"),
    ],
)
def test_a_refusal_names_what_to_install_and_ship_only_if_it_helps(
    differing: list[str], archive: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = {"caudal": "9", "duckdb": "8", "pyarrow": "7", "kernels": "a", "code": "b"}
    found = {**wanted, **dict.fromkeys(differing, "other")}
    monkeypatch.setattr("caudal.spark.fingerprint.fingerprint", lambda: found)
    refusal, _ = _loaded_tasks(wanted, archive)
    assert refusal.endswith(f"): {remedy}")


def test_refusals_of_several_tasks_are_told(tmp_path: Path) -> None:
    refusing = task_function("map_rows", b"", {"caudal": "9"}, "")
    found = TaskRows(tmp_path)
    for _ in range(2):
        for batch in refusing(iter([])):
            found.add(batch)
    told = list(found.numbered().values())
    assert len(told) == 2
    assert all(b"install caudal 9 on every executor" in one for one in told)
    found.close()


@pytest.mark.parametrize(("archive", "remedy"), [("", ", or add --ship"), ("shipped", "")])
def test_executors_that_cannot_load_caudal_are_told_what_to_install(
    archive: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "caudal.spark.fingerprint", None)
    refusal, _ = _loaded_tasks({"caudal": "9"}, archive)
    assert refusal.startswith("the executors cannot load Caudal (")
    assert refusal.endswith(f"): install caudal 9 on every executor{remedy}")
