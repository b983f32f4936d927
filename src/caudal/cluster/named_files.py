"""The files and folders that cluster.toml names: a process that needs a missing one dies."""

import os
from pathlib import Path

from caudal.cluster.commands import command
from caudal.cluster.folder import Cluster
from caudal.cluster.roster import MemberKind
from caudal.cluster.settings import FILE
from caudal.errors import UsageError
from caudal.process.certificates import Certificate
from caudal.process.tokens import read_known, read_strong


def require(cluster: Cluster) -> None:
    """Raise UsageError if a process of this host could not use what the file names."""
    kinds = {one.kind for one in cluster.here}
    settings, tls = cluster.settings, cluster.settings.tls
    if settings.tokens and MemberKind.GATEWAY in kinds:
        _require_tokens(cluster)
    if tls.certificate and MemberKind.GATEWAY in kinds:
        Certificate(cluster.folder / tls.certificate, cluster.folder / tls.key)
    if cluster.metrics_token is not None and settings.hosts[cluster.host].metrics:
        read_strong(cluster.metrics_token)
    if settings.workspace and MemberKind.WORKER in kinds:
        _require_workspace(cluster.folder / settings.workspace)


def _require_workspace(workspace: Path) -> None:
    if not workspace.is_dir():
        raise UsageError(
            f"there is no folder {workspace} for workers: make it, or change `workspace` in {FILE}"
        )
    if not os.access(workspace, os.W_OK | os.X_OK):
        raise UsageError(
            f"workers cannot write to {workspace}: change its owner, mount it writable (under "
            f"systemd, add it to ReadWritePaths), or change `workspace` in {FILE}"
        )


def _require_tokens(cluster: Cluster) -> None:
    try:
        read_known(cluster.tokens)
    except UsageError as error:
        if cluster.tokens.exists():
            raise
        how = f"make a token with `{command(cluster, 'token new NAME')}`"
        raise UsageError(f"{error}; {how}, or change `tokens` in {FILE}") from None
