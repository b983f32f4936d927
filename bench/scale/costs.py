"""What a scenario costs, computed from measured units. Pure: the page is made of it."""

from collections import Counter
from dataclasses import dataclass

from bench.scale.billing import CLASSES
from bench.scale.units import Units

_DAY, _MONTH_DAYS = 86_400.0, 30.0


@dataclass(frozen=True)
class Prices:
    """List prices in US dollars: an assumption, to be replaced by those of one's contract."""

    date: str = "November 2026"
    put_thousand: float = 0.005  # PUT, COPY, POST, LIST
    get_thousand: float = 0.0004
    delete_thousand: float = 0.0
    gigabyte_month: float = 0.023

    def of(self, bill: Counter[str]) -> float:
        """Return the price of requests by class."""
        thousand = {
            "put": self.put_thousand,
            "list": self.put_thousand,
            "get": self.get_thousand,
            "delete": self.delete_thousand,
        }
        return sum(bill[kind] / 1000 * thousand[kind] for kind in CLASSES)


@dataclass(frozen=True)
class Scenario:
    """A large cluster. Every number is a parameter."""

    workers: int = 1_000
    gateways: int = 20
    jobs_a_day: int = 10_000
    batches: int = 64  # of a job: 1 GiB in batches of 16 MiB
    partitions: int = 16
    folds: int = 5  # one for each query
    queries: int = 5
    terabytes: float = 100.0
    job_seconds: float = 60.0  # from its creation to its outcome
    statuses: int = 10  # that a client asks for while its job runs
    request_seconds: float = 0.02
    reconciler_pause: float = 1.0
    janitor_pause: float = 5.0

    @property
    def running(self) -> float:
        """The mean number of running jobs."""
        return self.jobs_a_day * self.job_seconds / _DAY


def job_bill(units: Units, one: Scenario) -> dict[str, Counter[str]]:
    """Return the requests of one job, by what they are for."""
    times = {
        "create a job": 1,
        "take a batch": one.batches,
        "end a table": 1,
        "tell the status": one.statuses,
        "map task": one.batches,
        "merge task": -(-one.batches // 256),
        "fold task": one.folds * one.partitions,
        "finish task": one.queries + 1,
        "janitor: an ended job": 1,
    }
    found = {}
    for act, count in times.items():
        bill: Counter[str] = Counter()
        for kind in CLASSES:
            each = units.requests[act].get(kind, 0.0)
            each += units.per_batch.get(act, {}).get(kind, 0.0) * one.batches
            bill[kind] = count * each  # type: ignore[assignment]
        found[act] = bill
    return found


def messages_per_job(one: Scenario) -> int:
    """Return the task messages of one job: each task is one, published and acknowledged."""
    merges = -(-one.batches // 256)
    return one.batches + merges + one.folds * one.partitions + one.queries + 1


@dataclass(frozen=True)
class Loop:
    """A loop of one gateway: the requests of a round, its time, and what all gateways ask a day."""

    requests: float
    seconds: float
    every_seconds: float
    daily: Counter[str]


def loop_cost(units: Units, one: Scenario, name: str, pause: float) -> Loop:
    """Return the cost of a loop that looks at every running job."""
    idle, each = units.requests[f"idle {name} round"], units.requests[f"{name}: a running job"]
    jobs = one.running
    bill = {kind: idle.get(kind, 0) + jobs * each.get(kind, 0) for kind in CLASSES}
    requests = sum(bill.values())
    seconds = requests * one.request_seconds
    every = seconds + max(pause, 2 * seconds)
    daily: Counter[str] = Counter()
    for kind, count in bill.items():
        daily[kind] = count * one.gateways * _DAY / every  # type: ignore[assignment]
    return Loop(requests, seconds, every, daily)


def gateway_bytes(units: Units, one: Scenario, base: float = 410e6) -> float:
    """Return the memory of a gateway: the measured peak of one, and what running jobs add."""
    return base + units.job_memory_bytes * one.running


def status_seconds(units: Units, one: Scenario) -> float:
    """Return how long a gateway takes to tell the status of a job."""
    return sum(units.requests["tell the status"].values()) * one.request_seconds


def month(bill: Counter[str], prices: Prices) -> float:
    """Return the price of a daily bill for a month."""
    return prices.of(bill) * _MONTH_DAYS
