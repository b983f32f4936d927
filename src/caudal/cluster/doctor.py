"""`caudal doctor`: checks of a cluster's environment, each with a remedy."""

import contextlib
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from caudal.broker.open_broker import open_broker
from caudal.cluster import named_files, open_files, rabbit_node
from caudal.cluster.commands import command
from caudal.cluster.folder import Cluster
from caudal.cluster.notices import SAME_PASSWORD, notices
from caudal.cluster.ports import refusals
from caudal.cluster.roster import MemberKind
from caudal.cluster.settings import FILE, PRIVATE
from caudal.cluster.upkeep import (
    launcher_of,
    look,
    other_secret,
    restore_secret,
    take_down_first,
)
from caudal.errors import BrokerLoginError, CaudalError, UsageError
from caudal.process.certificates import Certificate
from caudal.process.tokens import read_known
from caudal.sizes import parse_bytes
from caudal.store import open_store, require_conditional_create

_DISK_BYTES = 2 << 30
_GATEWAY_BYTES = 700 << 20
_COMPOSE = "run `docker compose up -d`; only medics and `docker compose run admin` reach the engine"
_OWNERS_WORKERS = 3  # with so many, at most one in three is held by slow tasks (ADR 23)


@dataclass(frozen=True)
class Finding:
    """The result of one check. `remedy` is empty if there is no problem."""

    what: str
    found: str
    remedy: str = ""


def examine(cluster: Cluster) -> Iterator[Finding]:
    """Run all checks, one by one. No check changes anything."""
    checks: list[Callable[[Cluster], Iterator[Finding]]] = [
        _settings, _hosts, _medics, _python, _files, _memory, _disk, _containers, _ports, _access,
        _rabbit, _broker, _store,
    ]  # fmt: skip
    for check in checks:
        yield from check(cluster)


def not_ready(cluster: Cluster) -> list[Finding]:
    """Return the problems that keep this host's healthy gateways from accepting jobs."""
    if not any(one.kind is MemberKind.GATEWAY for one in cluster.here):
        return []
    return unreachable(cluster)


def unreachable(cluster: Cluster) -> list[Finding]:
    """Return the problems of the broker and the store, as seen from this process."""
    with silent_logs():
        return [one for check in (_broker, _store) for one in check(cluster) if one.remedy]


@contextlib.contextmanager
def silent_logs() -> Iterator[None]:
    """Log nothing: the findings already say what libraries would log."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def _settings(cluster: Cluster) -> Iterator[Finding]:
    if cluster.strayed:
        yield Finding("settings", cluster.strayed, take_down_first(cluster))
    else:
        yield Finding("settings", f"{FILE} is valid")


def _hosts(cluster: Cluster) -> Iterator[Finding]:
    """Check what hosts need: the same secrets, two medics each, and a worker somewhere."""
    hosts = cluster.settings.hosts
    if len(hosts) > 1:
        missing = [path.name for path in cluster.secrets if not path.exists()]
        remedy = "copy them from another host" if missing else ""
        found = f"{', '.join(missing)} missing" if missing else "the files are there"
        yield Finding("secrets", found, remedy)
    used = {one.host for one in cluster.members}
    alone = [name for name, host in hosts.items() if host.medics < 2 and name in used]
    yield Finding(
        "medics",
        f"fewer than two on {', '.join(alone)}: without one, nothing there is restarted"
        if alone
        else "at least two on every host",
        f"write medics = 2 for each host into {FILE}, then `caudal down` and `caudal up` there"
        if alone
        else "",
    )
    if not any(host.workers for host in hosts.values()):
        yield Finding(
            "workers",
            "none on any host: every job waits",
            command(cluster, "scale worker=2"),
        )


def _medics(cluster: Cluster) -> Iterator[Finding]:
    """Ask the medics what they noticed and cannot mend."""
    try:
        told = look(cluster)
    except UsageError as error:  # the secret cannot be read
        yield Finding("secret", str(error.__cause__ or error), restore_secret(cluster))
        return
    noticed = notices(cluster, told) if told else []
    for one in noticed:
        yield Finding("cluster", one.found, one.remedy)
    if told and not noticed:
        yield Finding("cluster", f"{told.medic} has nothing to complain of")
    if told is None and (words := other_secret(cluster, cluster.members)):
        found, _, remedy = words.partition(": ")
        yield Finding("secret", found, remedy)
    elif told is None and cluster.is_running:
        yield Finding("cluster", "no medic answers", f"run `{command(cluster, 'up')}`")
    elif told is None:
        yield Finding("cluster", "nothing runs here")


def _python(cluster: Cluster) -> Iterator[Finding]:
    del cluster
    version = ".".join(str(part) for part in sys.version_info[:3])
    yield Finding("python", version)


def _files(cluster: Cluster) -> Iterator[Finding]:
    del cluster
    found = f"{open_files.allowed()} allowed per process"
    yield Finding("open files", found, open_files.remedy(open_files.WANTED))


def _memory(cluster: Cluster) -> Iterator[Finding]:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    host = cluster.settings.hosts[cluster.host]
    each = parse_bytes(cluster.settings.worker_memory)
    wanted = host.workers * each + host.gateways * _GATEWAY_BYTES
    remedy = "" if wanted <= total else f"run fewer workers, or lower worker_memory in {FILE}"
    yield Finding("memory", f"{total >> 20} MB, processes may use {wanted >> 20} MB", remedy)


def _disk(cluster: Cluster) -> Iterator[Finding]:
    free = shutil.disk_usage(cluster.folder).free
    remedy = "" if free >= _DISK_BYTES else f"make room on the disk of {cluster.folder}"
    yield Finding("disk", f"{free >> 20} MB free", remedy)


def _containers(cluster: Cluster) -> Iterator[Finding]:
    """Check that the Docker engine answers and has every container."""
    if cluster.settings.launcher != "docker":
        return
    trouble = launcher_of(cluster).trouble()
    yield Finding(
        "containers", trouble or f"all {len(cluster.here)} exist", _COMPOSE * bool(trouble)
    )


def _ports(cluster: Cluster) -> Iterator[Finding]:
    launcher = launcher_of(cluster)
    if launcher.trouble():
        return
    records = {member: launcher.record(member.name) for member in cluster.here}
    missing = [one for one, record in records.items() if record is None or record.gone]
    refused = list(refusals(cluster.settings, missing))
    for one in refused:
        found = f"of {one.where.address}, for {one.where.member.name}: {one.reason}"
        yield Finding(f"{one.where.protocol} port {one.where.port}", found, one.remedy)
    if not refused:
        yield Finding("ports", f"checked for {len(cluster.here)} processes")


def _access(cluster: Cluster) -> Iterator[Finding]:
    """Check the files that cluster.toml names, such as tokens and the certificate of gateways."""
    tls = cluster.settings.tls
    try:
        if cluster.settings.tokens:
            names = {one.name for one in read_known(cluster.tokens).entries}
            yield Finding(
                "tokens",
                f"of {len(names)} owners",
                "" if names else f"make one: {command(cluster, 'token new NAME')}",
            )
            yield from _workers(cluster, len(names))
        if tls.certificate:
            Certificate(cluster.folder / tls.certificate, cluster.folder / tls.key)
            yield Finding("certificate", f"{tls.certificate} matches its key")
        named_files.require(cluster)
    except UsageError as error:
        yield Finding("files", str(error), f"correct the file, or what {FILE} says of it")


def _workers(cluster: Cluster, owners: int) -> Iterator[Finding]:
    """Check that slow tasks of one owner leave most workers to the other owners (ADR 23)."""
    workers = sum(host.workers for host in cluster.settings.hosts.values())
    if owners > 1 and workers < _OWNERS_WORKERS:
        found = f"{workers} for {owners} owners: long queries of one owner can hold half of them"
        count = _OWNERS_WORKERS
        remedy = (
            f"write workers = {count} into {FILE}, or {command(cluster, f'scale worker={count}')}"
        )
        yield Finding("workers", found, remedy)


def _rabbit(cluster: Cluster) -> Iterator[Finding]:
    if cluster.settings.broker != PRIVATE:
        return
    if not rabbit_node.is_installed():
        yield Finding("rabbitmq-server", "not installed", "apt-get install rabbitmq-server")
        return
    yield Finding("rabbitmq-server", _rabbit_version())


def _rabbit_version() -> str:
    command = ["dpkg-query", "-W", "-f", "${Version}", "rabbitmq-server"]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return "installed"
    return shown.stdout or "installed"


def _broker(cluster: Cluster) -> Iterator[Finding]:
    if cluster.settings.broker == PRIVATE and not cluster.run_folder.exists():
        return
    try:
        broker = open_broker(cluster.broker_url(), "doctor")
    except CaudalError as error:
        yield Finding("broker", str(error), f"correct `broker` in {FILE}")
        return
    try:
        waiting = sum(broker.depths().values())
        yield Finding("broker", f"answers; {waiting} tasks waiting")
    except CaudalError as error:
        yield Finding("broker", str(error), _broker_remedy(cluster, error))
    finally:
        broker.close()


def _broker_remedy(cluster: Cluster, error: CaudalError) -> str:
    correct, is_refused = f"correct `broker` in {FILE}", isinstance(error, BrokerLoginError)
    if cluster.settings.broker != PRIVATE:
        return correct if is_refused else f"start it, or {correct}"
    if is_refused:
        return SAME_PASSWORD
    host = next(one.host for one in cluster.members if one.kind is MemberKind.BROKER)
    where = "" if host == cluster.host else f" on host {host}"
    return f"start it{where} (`{command(cluster, 'up', host)}`), or {correct}"


def _store(cluster: Cluster) -> Iterator[Finding]:
    url = cluster.store
    if "://" not in url and not Path(url).exists():
        yield Finding("store", f"`{command(cluster, 'up')}` creates {url}")
        return
    try:
        require_conditional_create(open_store(url))
        yield Finding("store", f"{url} keeps create-if-absent")
    except CaudalError as error:
        yield Finding("store", str(error), f"correct `store` in {FILE}, or repair the store")
