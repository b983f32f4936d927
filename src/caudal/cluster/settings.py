"""`cluster.toml`: which processes run on which hosts.

One file describes the whole cluster and is the same on every host. Every setting has a default, a
meaning written beside it in the file that `caudal up` makes, and a check with a clear complaint.
"""

import re
import shlex
from pathlib import Path

import msgspec

from caudal.errors import UsageError
from caudal.formats.quotas import USUAL_GATEWAYS, Quotas
from caudal.formats.quotas import complaints as quota_complaints
from caudal.sizes import parse_seconds

FILE = "cluster.toml"
PRIVATE = "private"
EMBEDDED = "embedded"
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,30}\Z")

TEMPLATE = """\
# A Caudal cluster. `caudal up` starts it, `caudal status` shows it, `caudal down` stops it.
# The same file lies on every host; paths count from the folder of this file.

name = "{name}"        # prefix of the broker's queues: two clusters may share one broker
store = "{store}"      # a folder that all hosts share, or s3://bucket/prefix
# amqp://user:password@host:5672/ is a RabbitMQ that runs; "private" starts one of our own;
# "embedded" keeps the queues in a file of this folder and serves one host only
broker = "{broker}"
tokens = ""            # what `caudal token new` writes; without it gateways listen on loopback only
worker_memory = "{worker_memory}"  # bound of each worker; what exceeds it spills to disk
keep_results = ""      # like "12h" or "7d": after the end of a job; empty: as it asked for, 1 day
launcher = "local"     # "local": processes of this machine; "docker": containers of these names
mount = ""             # docker only: where the containers see this folder

[tls]                  # PEM files; with them gateways speak TLS only, and follow their changes
certificate = ""
key = ""

[quotas]               # of one owner (a name in the token file); gateways follow changes
# requests = 16        # under way at once, at each gateway
# uploads = "80MiB"    # of bodies on their way at once, at each gateway
# streams = 64         # of events and previews open at once, at each gateway
# jobs = 64            # running
# kept = 10000         # jobs that run or whose results are kept
# stored = "100GB"     # of all objects of its jobs
# gateways = 2         # that share what is left of the last three; if not given, those of all hosts
# [quotas.owners.alice]
# jobs = 200           # of this owner; the rest as for everybody

[hosts.{host}]
address = "{address}"  # where the other hosts reach this one
port = {port}          # the first of a hundred ports: gateways +1, medics +50, private broker +90
medics = {medics}      # an odd number in all is best; the highest that is alive leads
gateways = {gateways}
workers = {workers}    # about one per core
broker = {runs_broker} # does the private broker run here? On one host at most
"""


class Host(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One machine (or address of it) and what runs there."""

    address: str = "127.0.0.1"
    port: int = 8420
    medics: int = 3
    gateways: int = USUAL_GATEWAYS
    workers: int = 2
    broker: bool = False


class Tls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The certificate of gateways; empty: they speak HTTP without TLS."""

    certificate: str = ""
    key: str = ""


class ClusterSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    hosts: dict[str, Host]
    name: str = "caudal"
    store: str = "store"
    broker: str = PRIVATE
    tokens: str = ""
    worker_memory: str = "700MB"
    keep_results: str = ""
    launcher: str = "local"
    mount: str = ""
    tls: Tls = Tls()
    quotas: Quotas = Quotas()


def read_settings(folder: Path) -> ClusterSettings:
    """The cluster that a folder describes, or a UsageError that names what to mend."""
    path = folder / FILE
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        command = f"caudal up --dir {shlex.quote(str(folder))}"
        raise UsageError(f"there is no {path}: `{command}` makes one") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    return parse(data, str(path))


def parse(data: bytes, where: str) -> ClusterSettings:
    """What the bytes of such a file say, checked."""
    try:
        settings = msgspec.toml.decode(data, type=ClusterSettings)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {error}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
        raise UsageError(f"{where} is not valid TOML, mend it: {error}") from None
    check(settings, where)
    return settings


def check(settings: ClusterSettings, where: str) -> None:
    """What the types do not say."""
    for complaint in _complaints(settings):
        raise UsageError(f"{where}: {complaint}")


def _complaints(settings: ClusterSettings) -> list[str]:
    found = []
    if not settings.hosts:
        found.append("no [hosts.NAME]: a cluster needs one host at least")
    found += [
        f"{name!r} cannot be a name: small letters, digits, _ and -"
        for name in (settings.name, *settings.hosts)
        if not _NAME.match(name)
    ]
    if settings.launcher not in ("local", "docker"):
        found.append(f'launcher = "{settings.launcher}": choose "local" or "docker"')
    for name, host in settings.hosts.items():
        found += _host_complaints(name, host)
    try:
        parse_seconds(settings.keep_results or "1d")
    except UsageError as error:
        found.append(f"keep_results: {error}")
    if bool(settings.tls.certificate) != bool(settings.tls.key):
        found.append("[tls] needs both certificate and key, or neither")
    found += quota_complaints(settings.quotas)
    brokers = sum(host.broker for host in settings.hosts.values())
    if settings.broker == PRIVATE and brokers != 1:
        found.append(f"the private broker runs on one host, not {brokers}: set its broker = true")
    if settings.broker == EMBEDDED and len(settings.hosts) > 1:
        found.append(
            'broker = "embedded" serves one host only: several need RabbitMQ, "private" on one of '
            "them or amqp://user:password@host:5672/"
        )
    if settings.broker == EMBEDDED and settings.launcher != "local":
        found.append('broker = "embedded" needs launcher = "local"')
    if settings.broker != PRIVATE and brokers:
        found.append("broker = true on a host is for the private broker only; remove it")
    if sum(host.medics for host in settings.hosts.values()) < 1:
        found.append("no medics: one at least, three for those who want no pause")
    places = [(host.address, host.port // 100) for host in settings.hosts.values()]
    if len(set(places)) < len(places):
        found.append("two hosts share an address and its hundred ports: change one's `port`")
    return found


def _host_complaints(name: str, host: Host) -> list[str]:
    found = [
        f"[hosts.{name}] {what} = {value}: from 0 to {most}"
        for what, value, most in (
            ("medics", host.medics, 9),
            ("gateways", host.gateways, 40),
            ("workers", host.workers, 999),
        )
        if not 0 <= value <= most
    ]
    if not 1024 <= host.port <= 65_400:
        found.append(f"[hosts.{name}] port = {host.port}: from 1024 to 65400")
    return found
