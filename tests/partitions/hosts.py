"""A cluster over the hosts of a network, started as on real machines: a folder and `up` on each."""

import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from caudal.cluster.folder import Cluster
from caudal.cluster.settings import PRIVATE
from caudal.process.wire import make_secret
from tests.acceptance.cluster import CAUDAL, RealCluster
from tests.partitions.faults import BROKER, WORKING, WRONG_CLOCK
from tests.partitions.network import Network

_SETTINGS = """\
name = "parted"
store = "{store}"
broker = "{broker}"
tokens = "tokens"
"""
_HOST = """
[hosts.{name}]
address = "{address}"
medics = 2
gateways = {gateways}
workers = {workers}
broker = {broker}
"""
OWNER = "partitions"


@dataclass(frozen=True)
class Gateways(RealCluster):
    """The cluster as its clients know it."""

    addresses: str = ""

    @property
    def gateways(self) -> str:
        return self.addresses


@dataclass
class Hosts:
    """The folders of all hosts, and what is done on them."""

    network: Network
    folder: Path
    environment: Mapping[str, str]
    _read: dict[Path, int] = field(default_factory=dict)  # bytes of logs

    @classmethod
    def laid_out(
        cls,
        network: Network,
        folder: Path,
        store: str,
        environment: Mapping[str, str],
        broker: str = PRIVATE,
    ) -> "Hosts":
        """The same files in a folder for each host, as docs/howto/several-machines.md says."""
        common = folder / "common"
        common.mkdir()
        (common / "cluster.toml").write_text(_settings(network, store, broker))
        for name in ("secret", "broker.password"):
            make_secret(common / name)
        new = [*CAUDAL, "token", "new", OWNER, "--token-file", str(common / "tokens")]
        token = subprocess.run(new, check=True, capture_output=True, text=True).stdout
        for host in (BROKER, *WORKING):
            shutil.copytree(common, folder / host)
        (folder / "token").write_text(token)
        (folder / "clock").write_bytes(struct.pack("<q", 0))
        return cls(network, folder, environment)

    def clients(self) -> Gateways:
        """The cluster as clients on another host see it."""
        addresses = ",".join(f"http://{self.network.address(one)}:8421" for one in WORKING)
        environment = {"CAUDAL_TOKEN_FILE": str(self.folder / "token")}
        return Gateways(self.folder, 0, environment, addresses)

    def cluster(self) -> Cluster:
        return Cluster.open(self.folder / BROKER, BROKER)

    def start_all(self) -> None:
        """The broker's host first, then the others side by side."""
        self.up(BROKER)
        with ThreadPoolExecutor(len(WORKING)) as pool:
            list(pool.map(self.up, WORKING))

    def up(self, host: str) -> None:
        """`caudal up` on that host."""
        self._caudal(host, "up")

    def down(self, host: str) -> None:
        """`caudal down` on that host."""
        self._caudal(host, "down")

    def restart(self, host: str) -> None:
        """`caudal restart --rolling` on that host."""
        self._caudal(host, "restart", "--rolling")

    def _caudal(self, host: str, *words: str) -> None:
        command = [*CAUDAL, *words, "--dir", str(self.folder / host), "--host", host]
        environment = {**os.environ, **self.environment}
        if host == WRONG_CLOCK:
            environment |= self._clock()
        with tempfile.TemporaryFile("w+") as told:  # what is started keeps pipes open
            done = subprocess.run(
                [*self.network.inside(host), *command],
                env=environment, stdin=subprocess.DEVNULL, stdout=told, stderr=told, check=False,
            )  # fmt: skip
            told.seek(0)
            if done.returncode:
                raise AssertionError(f"caudal {words} on {host}: {told.read()}")

    def move_clock(self, seconds: int) -> None:
        """Set the time of day of one host wrong by so many seconds."""
        with (self.folder / "clock").open("r+b") as file:
            file.write(struct.pack("<q", seconds))

    def new_lines(self) -> list[str]:
        """What medics have logged since the last call."""
        found: list[str] = []
        for log in sorted(self.folder.glob("*/logs/medic-*.log")):
            with log.open("rb") as file:
                file.seek(self._read.get(log, 0))
                found += file.read().decode(errors="replace").splitlines()
                self._read[log] = file.tell()
        return found

    def words(self) -> str:
        """The end of every log, for whoever must find out what went wrong."""
        some = (RealCluster(self.folder / host, 0).words() for host in (BROKER, *WORKING))
        return "\n".join(some)

    def _clock(self) -> dict[str, str]:
        library = self.folder / "clock.so"
        if not library.exists():
            source = Path(__file__).with_name("clock.c")
            command = ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl"]
            subprocess.run(command, check=True)
        return {"LD_PRELOAD": str(library), "CAUDAL_TEST_CLOCK": str(self.folder / "clock")}


def _settings(network: Network, store: str, broker: str) -> str:
    text = _SETTINGS.format(store=store, broker=broker)
    for host in (BROKER, *WORKING):
        count = 1 if host in WORKING else 0
        text += _HOST.format(
            name=host,
            address=network.address(host),
            gateways=count,
            workers=count,
            broker="true" if host == BROKER and broker == PRIVATE else "false",
        )
    return text
