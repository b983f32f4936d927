"""A private RabbitMQ node from the system's package: its files, environment and health check.

Rules
1. The node has its own ports, port mapper (epmd), cookie and folder, so it never meets another
   node of this machine. Clients use one port; the node and epmd use the next two, on loopback.
2. The server's shell script replaces itself with the node, so one pid is the broker.
3. The node sends no heartbeats. The medics of its host connect to it as a client would, and send
   heartbeats for it.
"""

import contextlib
import os
import shutil
import socket
import subprocess
from pathlib import Path

from caudal.process.privacy import private_folder

PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
LOOPBACK = "127.0.0.1"
_GREETING = b"AMQP\x00\x00\x09\x01"
_NAMES = b"\x00\x01n"  # asks an epmd for the nodes that it knows
_SETTINGS = """\
default_user = {user}
default_pass = {password}
loopback_users = none
disk_free_limit.absolute = 50MB
vm_memory_high_watermark.absolute = 300MB
raft.wal_max_size_bytes = 32000000
log.file.level = warning
log.console = false
"""
_SCHEDULERS = "+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none"  # no busy waiting when idle


def is_installed() -> bool:
    return PROGRAM.exists() and shutil.which("epmd") is not None


def lay_out(folder: Path, user: str, password: str) -> None:
    """Write the node's files; existing data stays."""
    for name in ("", "data", "logs", "generated"):
        private_folder(folder / name)
    cookie = folder / ".erlang.cookie"
    if not cookie.exists():
        cookie.touch(mode=0o600)
        cookie.write_text(password[:20].upper(), encoding="ascii")
    config = folder / "rabbitmq.conf"
    config.touch(mode=0o600)
    config.write_text(_SETTINGS.format(user=user, password=password), encoding="ascii")
    (folder / "advanced.config").write_text("[].\n", encoding="ascii")
    (folder / "plugins").write_text("[].\n", encoding="ascii")


def environment(folder: Path, address: str, port: int) -> dict[str, str]:
    """Return the environment. `port` is for clients."""
    return {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "HOME": str(folder),  # the cookie is there
        "RUNNING_UNDER_SYSTEMD": "1",
        "ERL_EPMD_PORT": str(mapper_port(port)),
        "ERL_EPMD_ADDRESS": LOOPBACK,
        "RABBITMQ_CONF_ENV_FILE": "/dev/null",
        "RABBITMQ_NODENAME": f"caudal{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": address,
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(node_port(port)),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "logs"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced.config"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_GENERATED_CONFIG_DIR": str(folder / "generated"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
            f"-kernel inet_dist_use_interface {{{LOOPBACK.replace('.', ',')}}} {_SCHEDULERS}"
        ),
    }


def node_port(port: int) -> int:
    """Return the port at which the node talks to its own tools."""
    return port + 1


def mapper_port(port: int) -> int:
    """Return the port of the node's epmd."""
    return port + 2


def has_port_mapper(port: int, timeout_seconds: float = 2.0) -> bool:
    """Return whether an epmd answers, which outlives a node that was killed."""
    where = (LOOPBACK, mapper_port(port))
    try:
        with socket.create_connection(where, timeout=timeout_seconds) as connection:
            connection.sendall(_NAMES)
            answer = connection.recv(4)
    except OSError:
        return False
    return answer == where[1].to_bytes(4, "big")  # it begins with its own port


def greets(address: str, port: int, timeout_seconds: float = 2.0) -> bool:
    """Return whether a node answers the AMQP protocol header."""
    try:
        with socket.create_connection((address, port), timeout=timeout_seconds) as connection:
            connection.sendall(_GREETING)
            return connection.recv(1) == b"\x01"
    except OSError:
        return False


def stop_port_mapper(port: int) -> None:
    """Stop the node's own epmd, which outlives it. epmd refuses while a node is registered."""
    command = ["epmd", "-port", str(mapper_port(port)), "-kill"]
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(command, capture_output=True, timeout=5, check=False)
