"""`caudal medic`: one medic of a cluster. Normally `caudal up` starts it."""

import asyncio
import time
from pathlib import Path
from typing import Annotated

import typer

from caudal.cluster.folder import Cluster
from caudal.cluster.roster import metrics_port
from caudal.cluster.upkeep import launcher_of
from caudal.errors import UsageError
from caudal.medic.figures import MedicMetrics
from caudal.medic.service import Medic
from caudal.process.heart import Heart
from caudal.process.logs import set_up_logs
from caudal.process.metrics import serving_metrics
from caudal.process.privacy import keep_private
from caudal.process.signals import Stop, stop_on_signals
from caudal.process.tokens import read_strong


def medic(
    heart: Annotated[
        Path, typer.Option("--heart", help="The file that the starting process writes.")
    ],
    folder: Annotated[Path, typer.Option("--dir", help="The cluster's folder.")],
    host: Annotated[str, typer.Option("--host", help="The name of this host in the cluster.")],
) -> None:
    """Supervise a cluster: receive heartbeats, elect a leader, restart dead processes.

    `caudal up` starts as many medics as cluster.toml says.
    """
    keep_private()
    beating = Heart(heart)
    set_up_logs("text", "medic", beating.file.name)
    cluster = Cluster.open_anyway(folder, host)
    me = next((one for one in cluster.here if one.name == beating.file.name), None)
    if me is None:
        raise UsageError(f"the cluster has no medic {beating.file.name} on host {host}")
    medic_ = Medic(me, cluster, launcher_of(cluster), beating)
    figures = MedicMetrics(lambda: medic_.told(time.monotonic()))
    port = metrics_port(cluster.settings, me)
    token = read_strong(cluster.metrics_token) if port and cluster.metrics_token else None
    with serving_metrics(figures.registry, port, token):
        asyncio.run(_run(medic_))


async def _run(medic_: Medic) -> None:
    asked = asyncio.Event()
    stop_on_signals(asyncio.get_running_loop(), Stop(), asked.set)
    await medic_.run(asked)
