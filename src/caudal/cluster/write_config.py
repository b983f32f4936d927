"""Creation of cluster.toml from the options of `caudal up`.

Once the file exists, it decides. So nothing wrong may get into it: the text is parsed and checked
before it is written, and so are the broker's URL, the store and what a start needs.
"""

from collections.abc import Callable
from pathlib import Path

from caudal.broker.open_broker import read_settings as read_broker
from caudal.cluster import rabbit_node
from caudal.cluster.folder import Cluster
from caudal.cluster.settings import EMBEDDED, FILE, METRICS_LAST, PRIVATE, TEMPLATE, parse
from caudal.errors import CaudalError, UsageError
from caudal.process.privacy import private_file, private_folder
from caudal.store import open_store

# After `port`, since all versions refuse a place among a host's own 100 ports. On the next hundred
# another cluster may have its own: this is between its gateways and its medics.
_METRICS = 120


def write_settings(
    folder: Path, require: Callable[[Cluster], object] = lambda cluster: None, /, **values: object
) -> None:
    """Write a new cluster.toml for one host, with every setting explained.

    `require` raises UsageError if the cluster could not be started.
    """
    given: dict[str, object] = {
        "name": "caudal",
        "store": "store",
        "broker": PRIVATE if rabbit_node.is_installed() else EMBEDDED,
        "worker_memory": "700MB",
        "host": "local",
        "address": "127.0.0.1",
        "port": 8420,
        "medics": 3,
        "gateways": 2,
        "workers": 2,
    }
    given |= {name: value for name, value in values.items() if value is not None}
    runs_broker = "true" if given["broker"] == PRIVATE else "false"
    metrics = int(str(given["port"])) + _METRICS
    text = TEMPLATE.format(
        **{name: _escaped(value) for name, value in given.items()},
        runs_broker=runs_broker,
        metrics=metrics if metrics <= METRICS_LAST else 0,
    )
    is_new = not folder.exists()  # checked now, because opening its store creates the folder too
    try:
        _require_sound(folder, text, require)
    except CaudalError as error:
        raise UsageError(f"{folder / FILE} was not written: {error}") from error
    if is_new:
        private_folder(folder)
    path = folder / FILE
    private_file(path)  # the broker's URL may hold a password
    path.write_text(text, encoding="utf-8")


def _escaped(value: object) -> str:
    """Return the value escaped for a TOML string."""
    return str(value).replace("\\", r"\\").replace('"', r"\"")


def _require_sound(folder: Path, text: str, require: Callable[[Cluster], object]) -> None:
    settings = parse(text.encode("utf-8"), FILE)
    if settings.broker not in (PRIVATE, EMBEDDED):
        try:
            read_broker(settings.broker)
        except UsageError as error:
            raise UsageError(f"{error}; or choose {PRIVATE} or {EMBEDDED}") from error
    cluster = Cluster(folder.resolve(), settings, next(iter(settings.hosts)))
    require(cluster)
    open_store(cluster.store)  # last, because it creates the folder
