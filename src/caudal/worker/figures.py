"""The Prometheus metrics of a worker."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from caudal.process.metrics import new_registry

_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)


class WorkerMetrics:
    """The metrics of one worker process, in their own registry."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or new_registry()
        self.doing = ""  # the task that it computes
        self.left = ""  # why the last task was left to a worker of another version
        self.left_at = 0.0  # by the clock that never jumps
        self.ready = False  # whether it has begun to take tasks
        self.done = 0  # tasks of all kinds that ended here
        self.tasks = Counter(
            "caudal_worker_tasks", "Tasks by result.", ("kind", "ending"), registry=self.registry
        )
        self.seconds = Histogram(
            "caudal_worker_task_seconds",
            "Time from taking a task to its end.",
            ("kind",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.bytes_in = Counter(
            "caudal_worker_bytes_in", "Bytes read for tasks.", ("kind",), registry=self.registry
        )
        self.bytes_out = Counter(
            "caudal_worker_bytes_out", "Bytes created by tasks.", ("kind",), registry=self.registry
        )
        self.held = Gauge("caudal_worker_held", "Tasks held.", registry=self.registry)
        self._connected = Gauge(
            "caudal_broker_connected", "1 if the broker is connected.", registry=self.registry
        )
        self._is_connected: Callable[[], bool] = lambda: False
        self._dropped = Gauge(
            "caudal_broker_dropped_messages",
            "Messages removed because they could not be read.",
            registry=self.registry,
        )

    def watch_broker(self, connected: Callable[[], bool], dropped: Callable[[], int]) -> None:
        """Call these functions whenever the metrics are read, or probes ask."""
        self._is_connected = connected
        self._connected.set_function(lambda: float(connected()))
        self._dropped.set_function(lambda: float(dropped()))

    @property
    def takes_tasks(self) -> bool:
        """Whether it takes tasks now: it has begun to, and its broker is connected."""
        return self.ready and self._is_connected()
