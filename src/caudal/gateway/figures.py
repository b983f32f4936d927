"""The gateway's metrics for Prometheus."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from caudal.formats.keys import Lane
from caudal.formats.quotas import Quota
from caudal.process.metrics import new_registry

_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


class GatewayMetrics:
    """The metrics of one gateway process, in a registry of their own."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or new_registry()
        self.over_quota = 0  # refusals, for `caudal status`
        self.answered = 0  # requests: shows a medic that there is progress
        self.requests = Counter(
            "caudal_gateway_requests",
            "Requests answered.",
            ("method", "path", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "caudal_gateway_request_seconds",
            "Time from the head of a request to the end of its answer.",
            ("method", "path"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.body_bytes = Counter(
            "caudal_gateway_batch_bytes", "Bytes of batches stored.", registry=self.registry
        )
        self.under_way = Gauge(
            "caudal_gateway_requests_under_way",
            "Requests not answered yet.",
            registry=self.registry,
        )
        self.rounds = Counter(
            "caudal_gateway_rounds",
            "Rounds of the reconciler and the janitor.",
            ("loop", "outcome"),
            registry=self.registry,
        )
        self.published_again = Counter(
            "caudal_gateway_tasks_published_again",
            "Tasks that the reconciler found missing and published again.",
            registry=self.registry,
        )
        self.quota_refusals = Counter(
            "caudal_gateway_quota_refusals",
            "Requests refused because their owner was over a quota.",
            ("quota",),
            registry=self.registry,
        )
        self.quota_fullest = Gauge(
            "caudal_gateway_quota_fullest",
            "Share of its quota used by the owner closest to its limit, from 0 to 1.",
            ("quota",),
            registry=self.registry,
        )
        self.stale_files = Gauge(
            "caudal_gateway_stale_files",
            "Changed files (tokens, quotas, certificates) that are invalid and not used.",
            registry=self.registry,
        )
        self.waiting = Gauge(
            "caudal_broker_waiting",
            "Messages waiting in a lane.",
            ("lane",),
            registry=self.registry,
        )

    def note_depths(self, depths: Mapping[Lane, int]) -> None:
        for lane, waiting in depths.items():
            self.waiting.labels(lane.value).set(waiting)

    def note_over_quota(self, quota: Quota) -> None:
        self.over_quota += 1
        self.quota_refusals.labels(quota.value).inc()

    def text(self) -> bytes:
        return generate_latest(self.registry)
