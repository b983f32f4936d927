"""The context of every handler: the gateway's functions, and the bounded room to run them in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from starlette.requests import Request

from caudal.formats.job import Text
from caudal.formats.keys import Lane
from caudal.formats.quotas import IN_STORE, NONE_GIVEN, Allowances, Quota, Quotas
from caudal.gateway.audit import Audit
from caudal.gateway.census import OwnerUsage, QuotaRoom
from caudal.gateway.cluster_view import ClusterView, NoMedics
from caudal.gateway.figures import GatewayMetrics
from caudal.gateway.growth import Growths
from caudal.gateway.limits import GatewayLimits
from caudal.gateway.looks import Looks
from caudal.gateway.outages import OutageLog
from caudal.gateway.peers import KnownCluster
from caudal.gateway.plan_waits import PlanWaits
from caudal.gateway.rates import Rates
from caudal.gateway.refusals import Refusal, later
from caudal.gateway.result_sql import ResultSql, Select
from caudal.gateway.room import Bodies, RequestPlaces, Threads, Turns, WaitPlaces
from caudal.gateway.select_rows import select_streams
from caudal.gateway.shared_answers import SharedAnswer
from caudal.gateway.shares import Shares, usual_quotas
from caudal.gateway.tokens import EVERYBODY, Caller, Tokens
from caudal.jobs.asking import DatasetQuestions
from caudal.jobs.dataset_service import DatasetService
from caudal.jobs.ports import Ports
from caudal.jobs.service import JobService

Applications = Callable[[], tuple[Text, ...]]
_COUNT_SECONDS = 2  # retry delay: the next count comes soon
_DIGITS = 9  # of a batch number, at most


@dataclass(frozen=True)
class Service:
    """One gateway process as its handlers see it."""

    gateway: JobService
    ports: Ports
    tokens: Tokens = field(default_factory=Tokens)
    limits: GatewayLimits = field(default_factory=GatewayLimits)
    figures: GatewayMetrics = field(default_factory=GatewayMetrics)
    stopping: Callable[[], bool] = lambda: False
    quotas: Callable[[], Quotas] = lambda: NONE_GIVEN
    audit: Audit = field(default_factory=Audit)
    cluster: ClusterView = field(default_factory=NoMedics)
    peers: KnownCluster = field(init=False)  # the same, with what was told last
    outages: OutageLog = field(default_factory=OutageLog)
    select: Select = select_streams  # over results; a gateway process has children for it
    applications: Applications = tuple  # that new datasets can be made with
    stale_files: Callable[[], int] = lambda: 0  # changed but invalid files, which are not used
    # One thread pool per kind of work, so that slow or stuck calls only delay their own kind.
    threads: Threads = field(init=False)  # call the store
    takers: Threads = field(init=False)  # also publish, so they wait for the broker too
    planners: Threads = field(init=False)
    previewers: Threads = field(init=False)
    bodies: Bodies = field(init=False)
    plans: Turns = field(init=False)
    plan_waits: PlanWaits = field(init=False)
    requests: RequestPlaces = field(init=False)
    waits: WaitPlaces = field(init=False)  # of those for requests
    streams: RequestPlaces = field(init=False)
    watchers: RequestPlaces = field(init=False)  # for requests without a token
    rates: Rates = field(init=False)  # of owners
    strangers: Rates = field(init=False)  # of those without a token, by address
    readiness: SharedAnswer[str] = field(init=False)
    depths: SharedAnswer[Mapping[Lane, int]] = field(init=False)
    shares: Shares = field(init=False)
    census: OwnerUsage = field(init=False)
    datasets: DatasetService = field(init=False)
    questions: DatasetQuestions = field(init=False)
    growths: Growths = field(init=False)
    looks: Looks = field(init=False)
    result_sql: ResultSql = field(init=False)

    def __post_init__(self) -> None:
        bounds = self.limits
        object.__setattr__(self, "peers", KnownCluster(self.cluster))
        allowances = self._allowances()
        shares = Shares(allowances, self.figures)

        def is_counted() -> bool:
            now = allowances()
            return any(now.bounds(one) for one in IN_STORE)

        takers = self._threads(bounds.threads, "taker")
        for name, room in (
            ("threads", self._threads(bounds.threads, "request")),
            ("takers", takers),
            ("readiness", SharedAnswer[str](takers, self.ports.clock.elapsed)),
            ("depths", SharedAnswer[Mapping[Lane, int]](takers, self.ports.clock.elapsed)),
            ("planners", self._threads(bounds.plans, "planner")),
            ("previewers", self._threads(bounds.previews, "previewer")),
            ("bodies", Bodies(bounds.bodies_bytes, bounds.bodies_seconds, shares)),
            ("plans", _turns(bounds)),
            ("plan_waits", PlanWaits(self.ports.clock.elapsed)),
            ("requests", RequestPlaces(bounds.requests, "requests")),
            ("waits", WaitPlaces(bounds.requests // 2)),
            ("streams", RequestPlaces(bounds.streams, "streams")),
            ("watchers", RequestPlaces(bounds.watchers, "requests without a token")),
            ("rates", Rates(bounds.rate_per_second, bounds.rate_burst)),
            ("strangers", Rates(bounds.rate_per_second, bounds.rate_burst)),
            ("shares", shares),
            ("census", OwnerUsage(self.ports.store, is_counted)),
            ("datasets", DatasetService(self.ports)),
            ("questions", DatasetQuestions(self.gateway, self.ports)),
            ("growths", Growths(self.ports.clock)),
            ("looks", Looks(self.ports.clock)),
            ("result_sql", ResultSql(self.gateway, self.select)),
        ):
            object.__setattr__(self, name, room)

    def lasting_refusal(self, owner: str, amounts: Mapping[Quota, int]) -> Refusal | None:
        """Return why the owner may not store these amounts now; None if it may."""
        for quota, amount in amounts.items():
            most = self.shares.limit(owner, quota)
            room = self.census.room(owner, quota, amount, most, self.quotas().gateways or 1)
            if room is QuotaRoom.FULL:
                return self.shares.refusal(owner, quota)
            if room is QuotaRoom.LATER:
                told = f"quota {quota} is nearly full, and several gateways share the rest"
                return later("busy", f"{told}: try again in a moment", _COUNT_SECONDS)
        return None

    def require_plannable(self, owner: str) -> None:
        """Raise Refusal if the owner must wait for its next plan."""
        refusal = self.plan_waits.refusal(owner) if self.tokens.required else None
        if refusal is not None:
            raise refusal

    def _threads(self, count: int, name: str) -> Threads:
        """Create a pool. With tokens, one owner gets at most half of its threads."""
        return Threads(count, name, max(1, count // 2) if self.tokens.required else count)

    def _allowances(self) -> Callable[[], Allowances]:
        usual = usual_quotas(self.limits, shared=self.tokens.required)
        known: list[tuple[Quotas, Allowances]] = []

        def now() -> Allowances:
            quotas = self.quotas()
            if not known or known[0][0] is not quotas:
                known[:] = [(quotas, Allowances.by(quotas, usual))]
            return known[0][1]

        return now

    @property
    def busy(self) -> bool:
        """Return whether any thread is still working."""
        return any(one.busy for one in self._all_threads())

    def close(self) -> None:
        """Close all pools without waiting for stuck threads."""
        for one in self._all_threads():
            one.close()

    def _all_threads(self) -> tuple[Threads, ...]:
        return self.threads, self.takers, self.planners, self.previewers


def _turns(bounds: GatewayLimits) -> Turns:
    return Turns(bounds.plans, bounds.plans_waiting, bounds.plans_each, bounds.plan_seconds)


@dataclass(frozen=True)
class RequestCall:
    """One request, its caller, and the owner that it concerns: the caller, or anyone for admins."""

    request: Request
    caller: Caller = EVERYBODY
    about: str | None = None

    @property
    def owner(self) -> str:
        return self.caller.owner if self.about is None else self.about

    def name(self, part: str) -> str:
        """Return a part of the path."""
        return str(self.request.path_params[part])

    @property
    def job(self) -> tuple[str, str]:
        """Return the job and its owner, the first arguments of the gateway's functions."""
        return self.name("job"), self.owner

    def number(self, part: str) -> int:
        """Return a part of the path as a number of at least 0."""
        text = self.name(part)
        if not text.isascii() or not text.isdecimal() or len(text) > _DIGITS:
            raise Refusal(400, "bad_request", f"{text[:40]!r} is not a batch number")
        return int(text)
