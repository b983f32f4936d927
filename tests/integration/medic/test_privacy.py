"""A stranger on the same machine: another user, who may look at nothing and hold nothing."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.cluster_folder import laid_out

from caudal.cluster import rabbit_node
from caudal.cluster.folder import Cluster
from caudal.cluster.start_note import write_note
from caudal.cluster.write_config import write_settings
from caudal.errors import UsageError
from caudal.medic.launcher import LocalLauncher
from caudal.process.records import write_record
from caudal.process.wire import make_secret

NOBODY = 65_534
OPENS = """
import os, sys
for path in sys.stdin.read().split("\\0"):
    try:
        os.close(os.open(path, os.O_RDONLY))
        print(path)
    except OSError:
        pass
"""
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")


@pytest.fixture
def folder() -> Iterator[Path]:
    """In a place that everybody may enter, made under a generous umask."""
    before = os.umask(0o022)
    place = Path(tempfile.mkdtemp(prefix="caudal-privacy-"))
    place.chmod(0o755)
    yield place / "cluster"
    os.umask(before)
    shutil.rmtree(place)


def opened_by_a_stranger(paths: list[Path]) -> list[str]:
    found = subprocess.run(
        ["/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable, "-c", OPENS],
        input="\0".join(map(str, paths)),
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.split()


def filled(folder: Path) -> Cluster:
    """A cluster's folder with all that its processes write before they run."""
    cluster = laid_out(folder, medics=1, workers=1)
    member = next(one for one in cluster.here if one.name == "worker-1")
    cluster.write_heart(member, 1)
    write_record(cluster.run_folder, member.name, 1, os.getpid())
    write_note(cluster.run_folder, cluster.settings)
    rabbit_node.lay_out(cluster.node, "user", "a-long-password-of-the-broker")
    (cluster.run_folder / "worker-1.starting").touch()
    (cluster.logs / "worker-1.log").write_text("words")
    return cluster


@as_root
def test_another_user_opens_nothing_of_a_cluster(folder: Path) -> None:
    filled(folder)
    assert opened_by_a_stranger([folder.parent]) == [str(folder.parent)], "the test is vacuous"
    assert opened_by_a_stranger([folder, *folder.rglob("*")]) == []


@as_root
def test_a_folder_that_everybody_could_read_becomes_private(folder: Path) -> None:
    """The folder itself may be one of the user's own, such as the present one."""
    folder.mkdir()
    for name in ("run/local", "logs", "broker", "store/jobs"):
        (folder / name).mkdir(parents=True)
    (folder / "run" / "local" / "gateway-2.starting").touch()
    (folder / "store" / "jobs" / "batch").write_text("rows")
    write_settings(folder, broker="amqp://nobody@127.0.0.1:1/", gateways=2)
    assert opened_by_a_stranger([folder / "run" / "local" / "gateway-2.starting"])
    Cluster.open(folder).lay_out()
    assert opened_by_a_stranger(list(folder.rglob("*"))) == []


def test_modes(folder: Path) -> None:
    cluster = filled(folder)
    for path in (folder, cluster.run_folder.parent, cluster.run_folder, cluster.logs, cluster.node):
        assert path.stat().st_mode & 0o777 == 0o700, path
    for path in (cluster.secret, folder / "cluster.toml", *cluster.run_folder.glob("*.heart")):
        assert path.stat().st_mode & 0o777 == 0o600, path


def test_a_folder_that_everybody_may_write_to_is_refused(folder: Path) -> None:
    cluster = laid_out(folder, medics=1)
    folder.chmod(0o777)
    with pytest.raises(UsageError, match="chmod o-w"):
        cluster.lay_out()


def test_what_a_process_writes_is_private(folder: Path) -> None:
    folder.mkdir()
    script = (
        "from caudal.process.heart import alive\n"
        "from pathlib import Path\n"
        "with alive(None, 'json'):\n"
        "    Path('file').touch(), Path('folder').mkdir()\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=folder, check=True)
    modes = [(folder / name).stat().st_mode & 0o777 for name in ("file", "folder")]
    assert modes == [0o600, 0o700]


def test_a_started_process_has_a_private_log_and_lock(folder: Path) -> None:
    cluster = laid_out(folder, medics=1, workers=1)
    member = next(one for one in cluster.here if one.name == "worker-1")
    launcher = LocalLauncher(cluster)
    launcher.start(member, 0)
    try:
        made = [cluster.run_folder / "worker-1.starting", cluster.log_of("worker-1")]
        assert [path.stat().st_mode & 0o777 for path in made] == [0o600, 0o600]
    finally:
        launcher.stop("worker-1", 5)


def test_a_secret_is_never_readable_by_others_even_for_a_moment(folder: Path) -> None:
    folder.mkdir()
    make_secret(folder / "secret")
    assert (folder / "secret").stat().st_mode & 0o777 == 0o600
