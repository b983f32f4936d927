"""`cluster.toml`: which processes run on which hosts.

One file describes the whole cluster and is the same on every host. Every setting has a default, an
explanation in the file that `caudal up` writes, and a check with a clear message.
"""

import re
import shlex
from pathlib import Path

import msgspec

from caudal.errors import UsageError
from caudal.formats.quotas import USUAL_GATEWAYS, Quotas
from caudal.formats.quotas import complaints as quota_complaints
from caudal.formats.task_kinds import LANES, lanes_of
from caudal.sizes import parse_bytes, parse_seconds
from caudal.toml import TomlError, decode_toml

FILE = "cluster.toml"
PRIVATE = "private"
EMBEDDED = "embedded"
METRICS_LAST = 64_500  # the last `metrics` after which 999 workers have ports
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,30}\Z")

TEMPLATE = """\
# A Caudal cluster. `caudal up` starts it, `caudal status` shows it, `caudal down` stops it.
# Use the same file on every host; paths are relative to the folder of this file.

name = "{name}"        # prefix of the broker's queues: two clusters may share one broker
store = "{store}"      # a folder that all hosts share, or s3://bucket/prefix
# amqp://user:password@host:5672/ is a running RabbitMQ; "private" starts a separate one;
# "embedded" keeps the queues in a file of this folder and serves one host only
broker = "{broker}"
tokens = ""            # file that `caudal token new` writes; without it gateways use loopback only
worker_memory = "{worker_memory}"  # limit of each worker; more spills to disk
workspace = ""         # folder for what spills; empty: the system's TMPDIR
wait = ""              # how long workers wait for store and broker, such as "10m"; empty: no limit
sentiment = []         # models besides "lexicon", such as "transformers:/models/reviews"
job_timeout = "30d"    # longest silence of a client before its job expires
rate = 500             # requests per second that one owner may send to one gateway
keep_results = ""      # after a job's end, such as "12h" or "7d"; empty: the job decides (1 day)
chaos = false          # whether an admin may kill processes by the page, to see them return
fsync = true           # false: a power cut may cost objects of a store that is a folder
log_format = "json"    # or "text", for people
metrics_token = ""     # file with a token: then metrics are served to other machines, too
keep_unused = "7d"     # how long outputs over datasets stay that no question uses
launcher = "local"     # "local": processes of this machine; "docker": containers (compose.yaml)

[tls]                  # PEM files; with them gateways use TLS only; changes apply at once
certificate = ""
key = ""

[quotas]               # per owner (a name in the token file); changes apply at once
# requests = 16        # in progress at once, at each gateway
# uploads = "80MiB"    # bodies in transit at once, at each gateway
# streams = 64         # event streams and previews open at once, at each gateway
# jobs = 64            # running
# kept = 10000         # jobs that run or have kept results
# stored = "100GB"     # all objects of its jobs and datasets
# gateways = 2         # that share the last three quotas; default: the gateways of all hosts
# [quotas.owners.alice]
# jobs = 200           # for this owner; other quotas as for everybody

[hosts.{host}]
address = "{address}"  # at which other hosts reach this one
port = {port}          # first of 100 ports: gateways +1, medics +50, private broker +90
medics = {medics}      # an odd total is best; the live medic with the highest number leads
gateways = {gateways}
workers = {workers}    # about one per core
tasks = []             # roles of workers, in turn: ["map,slow", "fold,finish"]; empty: all tasks
metrics = {metrics}         # first port of metrics: medics from it on, workers from +10 on; 0: none
broker = {runs_broker} # whether the private broker runs here; on one host at most
"""


class Host(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One machine (or one of its addresses) and its processes."""

    address: str = "127.0.0.1"
    port: int = 8420
    medics: int = 3
    gateways: int = USUAL_GATEWAYS
    workers: int = 2
    broker: bool = False
    tasks: tuple[str, ...] = ()
    metrics: int = 0


class Tls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The certificate of gateways; empty: HTTP without TLS."""

    certificate: str = ""
    key: str = ""


class ClusterSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    hosts: dict[str, Host] = {}
    name: str = "caudal"
    store: str = "store"
    broker: str = PRIVATE
    tokens: str = ""
    worker_memory: str = "700MB"
    workspace: str = ""
    wait: str = ""
    sentiment: tuple[str, ...] = ()
    job_timeout: str = "30d"
    rate: float = 500.0
    keep_results: str = ""
    chaos: bool = False
    fsync: bool = True
    log_format: str = "json"
    metrics_token: str = ""
    keep_unused: str = "7d"
    launcher: str = "local"
    tls: Tls = Tls()
    quotas: Quotas = Quotas()


def read_settings(folder: Path) -> ClusterSettings:
    """Return the settings of a folder's cluster; raise UsageError that says what to correct."""
    path = folder / FILE
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        command = f"caudal up --dir {shlex.quote(str(folder))}"
        raise UsageError(f"{path} does not exist: `{command}` creates it") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    return parse(data, str(path))


def parse(data: bytes, where: str) -> ClusterSettings:
    """Decode and check the bytes of such a file."""
    try:
        settings = decode_toml(data, ClusterSettings)
    except TomlError as error:
        raise UsageError(f"{where}: {error}") from None
    check(settings, where)
    return settings


def check(settings: ClusterSettings, where: str) -> None:
    """Check the rules that the types do not express."""
    for complaint in _complaints(settings):
        raise UsageError(f"{where}: {complaint}")


def _complaints(settings: ClusterSettings) -> list[str]:
    found = []
    if not settings.hosts:
        found.append("no [hosts.NAME]: a cluster needs at least one host")
    found += [
        f"{name!r} is not a valid name: use a-z, 0-9, _ and -"
        for name in (settings.name, *settings.hosts)
        if not _NAME.match(name)
    ]
    if settings.launcher not in ("local", "docker"):
        found.append(f'launcher = "{settings.launcher}": choose "local" or "docker"')
    for name, host in settings.hosts.items():
        found += _host_complaints(name, host)
    found += _value_complaints(settings)
    found += _role_complaints(settings)
    if bool(settings.tls.certificate) != bool(settings.tls.key):
        found.append("[tls] needs both certificate and key, or neither")
    found += quota_complaints(settings.quotas)
    brokers = sum(host.broker for host in settings.hosts.values())
    if settings.broker == PRIVATE and brokers != 1:
        found.append(f"the private broker needs broker = true on exactly one host, not {brokers}")
    if settings.broker == EMBEDDED and len(settings.hosts) > 1:
        found.append(
            'broker = "embedded" serves one host only: several need RabbitMQ, "private" on one of '
            "them or amqp://user:password@host:5672/"
        )
    if settings.broker == PRIVATE and settings.launcher != "local":
        found.append(
            'broker = "private" needs launcher = "local"; containers need "embedded" or amqp:'
        )
    if settings.broker != PRIVATE and brokers:
        found.append("broker = true on a host is for the private broker only; remove it")
    if sum(host.medics for host in settings.hosts.values()) < 1:
        found.append("no medics: set at least one, or three to avoid interruptions")
    places = [(host.address, host.port // 100) for host in settings.hosts.values()]
    if len(set(places)) < len(places):
        found.append("two hosts share an address and its 100 ports: change the `port` of one")
    return found


def _value_complaints(settings: ClusterSettings) -> list[str]:
    found = []
    for name in ("keep_results", "keep_unused", "job_timeout", "wait", "worker_memory"):
        value = getattr(settings, name)
        try:
            if name == "worker_memory":
                parse_bytes(value)
            elif value or name == "job_timeout":  # the others may be empty
                parse_seconds(value)
        except UsageError as error:
            found.append(f"{name}: {error}")
    if settings.log_format not in ("json", "text"):
        found.append(f'log_format = "{settings.log_format}": choose "json" or "text"')
    if settings.rate < 1:
        found.append(f"rate = {settings.rate}: must be at least 1")
    found += [
        f'sentiment = "{model}": write transformers: and a folder that begins with /'
        for model in settings.sentiment
        if not model.startswith("transformers:/")
    ]
    return found


def _role_complaints(settings: ClusterSettings) -> list[str]:
    """Complain about kinds of tasks that none of the workers would take.

    Workers beyond the number of roles take no other kinds, so they are not looked at: there may be
    any number of them in a file.
    """
    taken: set[str] = set()
    for host in settings.hosts.values():
        roles = host.tasks or (",".join(LANES),)
        taken |= {
            kind.strip() for role in roles[: max(host.workers, 0)] for kind in role.split(",")
        }
    left = [kind for kind in LANES if kind not in taken]
    if not taken or not left:
        return []
    return [f"no worker would take {', '.join(left)} tasks: change `tasks`, or add workers"]


def _host_complaints(name: str, host: Host) -> list[str]:
    found = [
        f"[hosts.{name}] {what} = {value}: must be from 0 to {most}"
        for what, value, most in (
            ("medics", host.medics, 9),
            ("gateways", host.gateways, 40),
            ("workers", host.workers, 999),
        )
        if not 0 <= value <= most
    ]
    if not 1024 <= host.port <= 65_400:
        found.append(f"[hosts.{name}] port = {host.port}: must be from 1024 to 65400")
    if host.metrics and not 1024 <= host.metrics <= METRICS_LAST:
        words = f"must be 0, or from 1024 to {METRICS_LAST}"
        found.append(f"[hosts.{name}] metrics = {host.metrics}: {words}")
    elif host.metrics and host.port - 1_100 < host.metrics < host.port + 100:
        first = host.port + 100
        found.append(f"[hosts.{name}] metrics = {host.metrics} meets `port`: try {first}")
    try:
        for kinds in host.tasks:
            lanes_of(kinds)
    except UsageError as error:
        found.append(f"[hosts.{name}] tasks: {error}")
    return found
