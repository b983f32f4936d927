"""The Prometheus metrics of a medic."""

from collections import Counter
from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from caudal.formats.medic_status import StatusReply
from caudal.medic.election import Role
from caudal.medic.supervision import State
from caudal.process.metrics import new_registry


class MedicMetrics(Collector):
    """The status that the medic would tell, as figures, whenever somebody asks."""

    def __init__(self, status: Callable[[], StatusReply]) -> None:
        self._status = status
        self.registry = new_registry()
        self.registry.register(self)

    def describe(self) -> list[Metric]:
        """See prometheus_client: names are not asked for before there is a status."""
        return []

    def collect(self) -> Iterator[Metric]:
        """See prometheus_client."""
        told = self._status()
        leads = GaugeMetricFamily("caudal_medic_leading", "1 if this medic leads.")
        leads.add_metric((), float(told.role == Role.LEADING))
        term = GaugeMetricFamily("caudal_medic_term", "The term of the last election.")
        term.add_metric((), told.term)
        states = GaugeMetricFamily(
            "caudal_medic_processes", "Processes by state.", labels=["state"]
        )
        counts = Counter(one.state for one in told.processes)
        for state in State:
            states.add_metric((state,), counts[state])
        restarts = CounterMetricFamily(
            "caudal_medic_restarts", "Restarts of a process.", labels=["process"]
        )
        for one in told.processes:
            restarts.add_metric((one.name,), one.restarts)
        strange = CounterMetricFamily(
            "caudal_medic_unverified_messages", "Messages that another secret signed."
        )
        strange.add_metric((), told.unverified)
        odd = CounterMetricFamily(
            "caudal_medic_unreadable_heartbeats", "Heartbeats of another version."
        )
        odd.add_metric((), told.unreadable)
        yield from (leads, term, states, restarts, strange, odd)
