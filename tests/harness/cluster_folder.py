"""A cluster's folder for tests, with nothing running."""

from pathlib import Path

from caudal.cluster.folder import Cluster
from caudal.cluster.write_config import write_settings
from tests.acceptance.cluster import free_hundred

AWAY = "amqp://nobody@127.0.0.1:1/"


def laid_out(folder: Path, *, medics: int, workers: int = 0) -> Cluster:
    """Settings on free ports, a broker that nobody reaches, a secret; no gateways."""
    port = free_hundred()
    write_settings(folder, broker=AWAY, medics=medics, gateways=0, workers=workers, port=port)
    found = Cluster.open(folder)
    found.lay_out()
    return found
