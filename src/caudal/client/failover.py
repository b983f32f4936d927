"""Requests to several addresses: if one does not answer, the next one is asked.

Rules
1. When and how often a request is repeated is decided by jobs/retry.py; here is one round of it.
2. Lost connections, time-outs, answers that drip (pace.py), 408 and 5xx mean: ask the next address.
   The address that answered last is asked first. A job begins at an address that follows from its
   id; a question to a dataset, an offer of files and a watch at one that is drawn. So the clients
   of a cluster spread over its gateways.
3. A body that cannot be what was asked for (bodies.py), or a store that is damaged, is an answer
   that cannot be believed: ask the next address too.
4. A gateway without room (429: busy, or a quota that each gateway counts for itself) has done
   nothing: ask the next address; if none has room, repeat after Retry-After. What would be the same
   there ends the round: too many requests a second, or a quota of the whole cluster (jobs, kept,
   stored), which is reported after the time of patience.
5. A gateway whose certificate is not trusted is not asked again: time does not mend that.
6. The token stands in one header of requests, and nowhere else.
7. A request that may have been carried out, although its answer is lost, is sent again only after
   `before_again`, which may look what is there and raise an error instead.
"""

import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self
from zlib import crc32

import httpx

from caudal.client import bodies
from caudal.client.connections import Connections
from caudal.client.pace import paced
from caudal.client.refusals import code_of, error_of, quota_of
from caudal.errors import CaudalError, FormatError, UsageError
from caudal.jobs.interfaces import UnreachableError
from caudal.jobs.retry import Retry, Round
from caudal.process.clock import SystemClock
from caudal.process.signals import Stop

RESULT_TYPE = "application/vnd.caudal.result"
_AGAIN = frozenset({408, 500, 502, 503, 504})
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_LASTING_QUOTAS = ("jobs", "kept", "stored")
_LONGEST_RETRY_AFTER = 30.0
_LAST_WORD_SECONDS = 2.0
_TELL_AGAIN_SECONDS = 30.0
_CONNECT_SECONDS = 3.0
_SECONDS = 15.0  # without enough data, until the next gateway is asked
_LONG_SECONDS = 45.0  # for requests that read, write or plan much before the answer
_PIECE_BYTES = 256 << 10  # of a body; httpcore copies the unsent rest of larger pieces


@dataclass(frozen=True)
class Answer:
    """The answer of a gateway, and its address."""

    address: str
    status: int
    body: bytes
    retry_after: float = 0.0

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def error(self) -> CaudalError:
        """Return the error for an answer that is not a success."""
        return error_of(self.address, self.status, self.body)


@dataclass
class _Request:
    """A request that is sent to each gateway in turn."""

    method: str
    path: str
    body: bytes | None
    headers: Mapping[str, str]
    take: bodies.Take
    before_again: Callable[[], None]
    may_be_done: bool = False  # rule 7

    @property
    def seconds(self) -> float:
        is_long = bool(self.body) or RESULT_TYPE in self.headers.values()
        return _LONG_SECONDS if is_long else _SECONDS

    @property
    def all_headers(self) -> Mapping[str, str]:
        size = {} if self.body is None else {"Content-Length": str(len(self.body))}
        return {**self.headers, **size}


def _look_at_nothing() -> None:
    """Do nothing: most requests may be carried out twice."""


class Failover:
    """Requests to any gateway that answers. Thread-safe."""

    def __init__(
        self,
        addresses: Sequence[str],
        token: str | None = None,
        *,
        patience_seconds: float = 60.0,
        stop: Stop | None = None,
        trusted: ssl.SSLContext | None = None,
        connections: Connections | None = None,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`connections` are those of another one, which closes them; else it has its own. `tell`
        takes lines for people who wait."""
        self.addresses = tuple(addresses)
        self.patience_seconds = patience_seconds
        self._token = token
        self._trusted = trusted
        self.stop = stop or Stop()
        self.tell, self._told = tell, float("-inf")
        self._retry = Retry(SystemClock(self.stop), patience_seconds, tell=self.tell_rarely)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._has_own = connections is None
        self._connections: Connections | None = connections or Connections(addresses, trusted)
        self._best = 0  # index of the address that answered last
        self._lock = threading.Lock()

    def tell_rarely(self, line: str) -> None:
        """Tell a person what keeps requests waiting. Many may wait for the same reason."""
        with self._lock:
            now = time.monotonic()
            if now - self._told < _TELL_AGAIN_SECONDS:
                return
            self._told = now
        self.tell(line)

    def give_up(self) -> None:
        """Send no further requests from any thread; requests in progress are still answered."""
        self.stop.request("the client is closed")

    def close(self) -> None:
        self.give_up()
        if self._has_own and self._connections is not None:
            self._connections.close()
        self._connections = None

    def again(self) -> Self:
        """Return a new client of the same kind, for one last request after this one gave up."""
        return type(self)(
            self.addresses,
            self._token,
            patience_seconds=_LAST_WORD_SECONDS,
            trusted=self._trusted,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        take: bodies.Take = bodies.take_reply,
        before_again: Callable[[], None] = _look_at_nothing,
    ) -> Answer:
        """Return the first answer of any gateway. `take` reads the body of a success. See rule 7
        for `before_again`, which may ask, too."""
        all_headers = {**self._headers, **(headers or {})}
        request = _Request(method, path, body, all_headers, take, before_again)
        return self._retry.ask(lambda: self._round(request))

    def _round(self, request: "_Request") -> Round[Answer]:
        """Ask every gateway once, until one of them answers."""
        turn, wrong, refused = Round[Answer](), set[str](), 0
        for address in self.in_turn():
            self._check_open()
            if request.may_be_done:
                request.before_again()
            try:
                answer = self._one(address, request)
            except httpx.TransportError as error:
                request.may_be_done |= not isinstance(error, _NOT_SENT)
                turn.troubles[address] = _trouble(error)
                _require_trust(address, error)
                continue
            except FormatError as error:
                request.may_be_done = True
                turn.troubles[address] = str(error)
                wrong.add(address)
                continue
            if answer.status != 429 and answer.status not in _AGAIN:
                self.prefer(address)
                turn.answer = answer
                return turn
            turn.troubles[address] = str(answer.error()).removeprefix(f"{address} ")
            turn.retry_after = max(turn.retry_after, answer.retry_after)
            if answer.status == 429:
                if quota_of(answer.body) in _LASTING_QUOTAS:
                    turn.over_quota, turn.is_busy = str(answer.error()), False
                    return turn
                turn.is_busy = True
                if code_of(answer.body) == "rate_limited":
                    return turn
                continue
            refused += 1
            request.may_be_done = True
            if code_of(answer.body) == "damaged":
                wrong.add(address)
        turn.is_wrong = wrong.issuperset(self.addresses)
        turn.is_refused = refused == len(self.addresses)
        return turn

    def _one(self, address: str, request: "_Request") -> Answer:
        """Ask one gateway. Stop reading a body as soon as it is refused."""
        content = _pieces(request.body) if request.body is not None else None
        with (
            paced(request.seconds) as pace,
            self._http.stream(
                request.method,
                address + request.path,
                content=content,
                headers=request.all_headers,
                timeout=_usual_time(request.seconds),
            ) as answer,
        ):
            pace.end_of_head()
            take = request.take if answer.is_success else bodies.take_reply
            return Answer(address, answer.status_code, take(answer), _retry_after(answer))

    def in_turn(self) -> list[str]:
        """Return all addresses, starting with the one that answered last."""
        with self._lock:
            return [*self.addresses[self._best :], *self.addresses[: self._best]]

    def begin_at(self, name: str) -> None:
        """Ask first the gateway that follows from a name: the id of a job, or a random text."""
        with self._lock:
            self._best = crc32(name.encode()) % len(self.addresses)

    def prefer(self, address: str) -> None:
        with self._lock:
            self._best = self.addresses.index(address)

    def pause(self, rounds: int) -> None:
        """Wait before the next round; shorter if the client is closed."""
        self._retry.pause(rounds)
        self._check_open()

    def stream(self, path: str, address: str, headers: Mapping[str, str]) -> httpx.Response:
        """Open an event stream at one gateway; the caller closes it."""
        http = self._http
        request = http.build_request(
            "GET", address + path, headers={**self._headers, **headers}, timeout=_usual_time()
        )
        with paced(_SECONDS):
            return http.send(request, stream=True)

    @property
    def _http(self) -> httpx.Client:
        connections = self._connections
        if connections is None:
            raise UnreachableError("the client is closed")
        return connections.http

    def _check_open(self) -> None:
        if self.stop.requested():
            raise UnreachableError("the client is closed")


def _usual_time(seconds: float = _SECONDS) -> httpx.Timeout:
    return httpx.Timeout(seconds, connect=_CONNECT_SECONDS)


def _pieces(body: bytes) -> Iterator[bytes]:
    for begin in range(0, len(body), _PIECE_BYTES):
        yield body[begin : begin + _PIECE_BYTES]


def _require_trust(address: str, error: httpx.TransportError) -> None:
    """Raise UsageError if the certificate is not trusted (rule 5)."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise UsageError(
                f"the certificate of {address} is not trusted ({cause.verify_message}): give the "
                "certificate of its issuer with --ca FILE, or use the name in the certificate"
            ) from None
        cause = cause.__cause__ or cause.__context__


def _trouble(error: httpx.TransportError) -> str:
    """Return in a few words why there was no answer."""
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    return " ".join(str(error).split())[:120] or "the connection was lost"


def _retry_after(answer: httpx.Response) -> float:
    try:
        seconds = float(answer.headers.get("Retry-After", "1"))
    except ValueError:
        seconds = 1.0
    return min(seconds, _LONGEST_RETRY_AFTER) if seconds >= 0.0 else 1.0  # NaN gives 1.0 too
