"""What every handler is given: the gateway's functions, and room to run them in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from starlette.requests import Request

from caudal.formats.quotas import IN_STORE, NONE_GIVEN, Allowances, Quota, Quotas
from caudal.gateway.audit import Audit
from caudal.gateway.census import OwnerUsage, QuotaRoom
from caudal.gateway.figures import GatewayMetrics
from caudal.gateway.limits import GatewayLimits
from caudal.gateway.rates import Rates
from caudal.gateway.refusals import Refusal, later
from caudal.gateway.room import Bodies, RequestPlaces, Threads, Turns
from caudal.gateway.shares import Shares, usual_quotas
from caudal.gateway.tokens import EVERYBODY, Caller, Tokens
from caudal.jobs.ports import Ports
from caudal.jobs.service import JobService

_COUNT_SECONDS = 2  # until it is worth to ask again: the next count comes soon
_DIGITS = 9  # of a batch's number; what is longer is no number of a batch


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
    stale_files: Callable[[], int] = lambda: 0  # changed ones that are wrong and are not used
    # Threads for each kind of work, so that what takes long or is stuck holds up its own kind only.
    threads: Threads = field(init=False)  # ask the store
    takers: Threads = field(init=False)  # publish too, and so wait for the broker
    planners: Threads = field(init=False)
    previewers: Threads = field(init=False)
    bodies: Bodies = field(init=False)
    plans: Turns = field(init=False)
    requests: RequestPlaces = field(init=False)
    streams: RequestPlaces = field(init=False)
    watchers: RequestPlaces = field(init=False)  # of those who show no token
    rates: Rates = field(init=False)
    shares: Shares = field(init=False)
    census: OwnerUsage = field(init=False)

    def __post_init__(self) -> None:
        bounds = self.limits
        allowances = self._allowances()
        shares = Shares(allowances, self.figures)

        def is_counted() -> bool:
            now = allowances()
            return any(now.bounds(one) for one in IN_STORE)

        for name, room in (
            ("threads", self._threads(bounds.threads, "request")),
            ("takers", self._threads(bounds.threads, "taker")),
            ("planners", self._threads(bounds.plans, "planner")),
            ("previewers", self._threads(bounds.previews, "previewer")),
            ("bodies", Bodies(bounds.bodies_bytes, bounds.bodies_seconds, shares)),
            ("plans", _turns(bounds)),
            ("requests", RequestPlaces(bounds.requests, "requests")),
            ("streams", RequestPlaces(bounds.streams, "streams")),
            ("watchers", RequestPlaces(bounds.watchers, "requests without a token")),
            ("rates", Rates(bounds.rate_per_second, bounds.rate_burst)),
            ("shares", shares),
            ("census", OwnerUsage(self.ports.store, is_counted)),
        ):
            object.__setattr__(self, name, room)

    def lasting_refusal(self, owner: str, amounts: Mapping[Quota, int]) -> Refusal | None:
        """Why the owner may not store so much more now; None if it may."""
        for quota, amount in amounts.items():
            most = self.shares.limit(owner, quota)
            room = self.census.room(owner, quota, amount, most, self.quotas().gateways or 1)
            if room is QuotaRoom.FULL:
                return self.shares.refusal(owner, quota)
            if room is QuotaRoom.LATER:
                told = f"quota {quota} is nearly full, and several gateways share what is left"
                return later("busy", f"{told}: try again in a moment", _COUNT_SECONDS)
        return None

    def _threads(self, count: int, name: str) -> Threads:
        """With tokens, one owner holds half of them at most."""
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
        """Is a thread still at work?"""
        return any(one.busy for one in self._all_threads())

    def close(self) -> None:
        """Threads that are stuck are left behind."""
        for one in self._all_threads():
            one.close()

    def _all_threads(self) -> tuple[Threads, ...]:
        return self.threads, self.takers, self.planners, self.previewers


def _turns(bounds: GatewayLimits) -> Turns:
    return Turns(bounds.plans, bounds.plans_waiting, bounds.plans_each, bounds.plan_seconds)


@dataclass(frozen=True)
class RequestCall:
    """One request, who makes it, and whose things it is about: the caller's, or any for admins."""

    request: Request
    caller: Caller = EVERYBODY
    about: str | None = None

    @property
    def owner(self) -> str:
        return self.caller.owner if self.about is None else self.about

    def name(self, part: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[part])

    @property
    def job(self) -> tuple[str, str]:
        """The job and its owner, as the gateway's functions take them first."""
        return self.name("job"), self.owner

    def number(self, part: str) -> int:
        """A part of the path that counts from 0."""
        text = self.name(part)
        if not text.isascii() or not text.isdecimal() or len(text) > _DIGITS:
            raise Refusal(400, "bad_request", f"{text[:40]!r} is no number of a batch")
        return int(text)
