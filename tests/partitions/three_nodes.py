"""Three nodes of RabbitMQ by deploy/rabbitmq.conf, one on each working host.

The file is used as it is: names of hosts are those of the network, found by a file of Erlang's own
(`inetrc`), because namespaces share /etc/hosts. Only a user is added, since nobody runs rabbitmqctl
before the first start here. The nodes end with their namespaces.
"""

import re
import secrets
import subprocess
import time
from pathlib import Path

from caudal.cluster import rabbit_node
from tests.harness.rabbit import PASSWORD, USER
from tests.partitions.faults import WORKING
from tests.partitions.network import Network

_FILE = Path(__file__).parents[2] / "deploy" / "rabbitmq.conf"
_PORT = 5672
_START_SECONDS = 180.0


def start(net: Network, folder: Path, ticktime: int | None = None) -> str:
    """Start the nodes and wait until they are one cluster. Return their addresses for clients.

    `ticktime` replaces that of the file.
    """
    names = "".join(f'{{host, {_tuple(net.address(one))}, ["{one}"]}}.\n' for one in WORKING)
    folder.mkdir()
    (folder / "inetrc").write_text(f"{names}{{lookup, [file]}}.\n")
    text, cookie = _FILE.read_text(), secrets.token_hex(16).upper()
    if ticktime is not None:
        text = re.sub(r"(?m)^net_ticktime = \d+$", f"net_ticktime = {ticktime}", text)
    for host in WORKING:
        _start_one(net, host, folder, text, cookie)
    for host in WORKING:
        _await_cluster(net, host, folder)
    return ",".join(f"amqp://{USER}:{PASSWORD}@{net.address(one)}:{_PORT}/" for one in WORKING)


def _start_one(net: Network, host: str, folder: Path, settings: str, cookie: str) -> None:
    here = folder / host
    rabbit_node.lay_out(here, USER, PASSWORD)
    (here / ".erlang.cookie").write_text(cookie)
    user = f"default_user = {USER}\ndefault_pass = {PASSWORD}\n"
    (here / "rabbitmq.conf").write_text(f"{settings}\n{user}")
    with (here / "output.txt").open("wb") as output:
        subprocess.Popen(
            [*net.inside(host), str(rabbit_node.PROGRAM)],
            env=_environment(net, host, folder),
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=here,
        )  # fmt: skip


def _environment(net: Network, host: str, folder: Path) -> dict[str, str]:
    address = net.address(host)
    usual = rabbit_node.environment(folder / host, address, _PORT)
    more = usual["RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"].replace("{127,0,0,1}", _tuple(address))
    del usual["ERL_EPMD_ADDRESS"], usual["ERL_EPMD_PORT"]  # each namespace has its own
    return usual | {
        "RABBITMQ_NODENAME": f"rabbit@{host}",
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": more,
        "ERL_INETRC": str(folder / "inetrc"),
    }


def _await_cluster(net: Network, host: str, folder: Path) -> None:
    """Wait until that node sees all three."""
    program = str(rabbit_node.PROGRAM.with_name("rabbitmqctl"))  # the one in PATH is another user
    ask = [program, "-n", f"rabbit@{host}", "await_online_nodes", str(len(WORKING))]
    until, told = time.monotonic() + _START_SECONDS, ""
    while time.monotonic() < until:
        done = subprocess.run(
            [*net.inside(host), *ask], env=_environment(net, host, folder),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            return
        told = done.stdout + done.stderr
        time.sleep(1)
    words = (folder / host / "output.txt").read_text(errors="replace")
    raise AssertionError(f"no cluster of RabbitMQ at {host}: {told[-2000:]}\n{words[-2000:]}")


def _tuple(address: str) -> str:
    """An IPv4 address as Erlang writes it."""
    return f"{{{address.replace('.', ',')}}}"
