"""Any of several addresses: what one does not answer is asked of the next.

Rules
1. Every request may be sent twice (tasks/gateway.py), so one whose answer was lost is sent again.
2. Lost connections, time-outs, 408 and 5xx mean: the next address, and after a round of all of
   them a pause that grows, with jitter. The address that answered last is asked first.
3. When none has answered for the time of patience: UnreachableError, naming all of them.
4. 429 is an answer: the same again after Retry-After, for as long as gateways go on saying it.
5. The token stands in one header of requests, and nowhere else.
"""

import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import httpx

from caudal.client.addresses import is_loopback
from caudal.client.refusals import error_of
from caudal.process.signals import Stop
from caudal.tasks.ports import UnreachableError

RESULT_TYPE = "application/vnd.caudal.result"
_AGAIN = frozenset({408, 500, 502, 503, 504})
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 3.0
_LONGEST_RETRY_AFTER = 30.0
_LAST_WORD_SECONDS = 2.0
_CONNECT_SECONDS = 3.0
_SECONDS = 15.0  # of silence, after which the next gateway is asked
_LONG_SECONDS = 45.0  # where much is read, written or planned before an answer
_PIECE_BYTES = 256 << 10  # of a body; of more, httpcore copies what a socket did not take at once


@dataclass
class _Round:
    """What came of asking all gateways once: an answer, a refusal for now, or nothing."""

    address: str = ""
    answer: httpx.Response | None = None
    is_busy: bool = False
    retry_after: float = 0.0
    troubles: dict[str, str] = field(default_factory=dict)


class Failover:
    """Requests to whichever gateway answers. Several threads may use it at once."""

    def __init__(
        self,
        addresses: Sequence[str],
        token: str | None = None,
        *,
        patience_seconds: float = 60.0,
        stop: Stop | None = None,
    ) -> None:
        self.addresses = tuple(addresses)
        self.patience_seconds = patience_seconds
        self._token = token
        self.stop = stop or Stop()
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(
            timeout=httpx.Timeout(_SECONDS, connect=_CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=32),
            trust_env=not all(is_loopback(one) for one in addresses),  # no proxy to this machine
        )
        self._best = 0  # which address answered last
        self._lock = threading.Lock()

    def give_up(self) -> None:
        """Ask nothing again, in whatever thread; what is under way is still answered."""
        self.stop.request("the client is closed")

    def close(self) -> None:
        self.give_up()
        self._http.close()

    def again(self) -> Self:
        """Another one of the same, for one last request after this one gave up."""
        return type(self)(self.addresses, self._token, patience_seconds=_LAST_WORD_SECONDS)

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
    ) -> tuple[str, httpx.Response]:
        """The first answer that any gateway gives, and who gave it."""
        since, rounds = time.monotonic(), 0
        while True:
            turn = self._round(method, path, body, {**self._headers, **(headers or {})})
            if turn.answer is not None:
                return turn.address, turn.answer
            if turn.is_busy:
                since, rounds = time.monotonic(), 0
            elif time.monotonic() - since >= self.patience_seconds:
                raise self._unreachable(turn.troubles)
            self.pause(rounds, turn.retry_after)
            rounds += 1

    def _round(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> "_Round":
        """Ask every gateway once, until one of them answers."""
        turn, is_long = _Round(), bool(body) or RESULT_TYPE in headers.values()
        seconds = _LONG_SECONDS if is_long else _SECONDS
        timeout = httpx.Timeout(seconds, connect=_CONNECT_SECONDS)
        if body is not None:
            headers = {**headers, "Content-Length": str(len(body))}
        for address in self.in_turn():
            self._check_open()
            content = _pieces(body) if body is not None else None
            try:
                answer = self._http.request(
                    method, address + path, content=content, headers=headers, timeout=timeout
                )
            except httpx.TransportError as error:
                turn.troubles[address] = _trouble(error)
                continue
            if answer.status_code == 429:
                turn.is_busy, turn.retry_after = True, _retry_after(answer)
                return turn
            if answer.status_code not in _AGAIN:
                self.prefer(address)
                turn.address, turn.answer = address, answer
                return turn
            turn.troubles[address] = _said(address, answer)
            turn.retry_after = max(turn.retry_after, _retry_after(answer))
        return turn

    def _unreachable(self, troubles: Mapping[str, str]) -> UnreachableError:
        told = "; ".join(f"{address}: {reason}" for address, reason in troubles.items())
        seconds = f"{self.patience_seconds:g} seconds"
        return UnreachableError(f"no gateway answered for {seconds} (tried {told})")

    def in_turn(self) -> list[str]:
        """All addresses, the one that answered last first."""
        with self._lock:
            return [*self.addresses[self._best :], *self.addresses[: self._best]]

    def prefer(self, address: str) -> None:
        with self._lock:
            self._best = self.addresses.index(address)

    def pause(self, rounds: int, least: float = 0.0) -> None:
        """Wait before the next round; shorter if the client is closed."""
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(rounds, 10))
        self.stop.wait(least + longest * random.uniform(0.5, 1.0))
        self._check_open()

    def stream(self, path: str, address: str, headers: Mapping[str, str]) -> httpx.Response:
        """Open a stream of events at one gateway; the caller closes it."""
        request = self._http.build_request(
            "GET", address + path, headers={**self._headers, **headers}
        )
        return self._http.send(request, stream=True)

    def _check_open(self) -> None:
        if self.stop.requested():
            raise UnreachableError("the client is closed")


def _pieces(body: bytes) -> Iterator[bytes]:
    for begin in range(0, len(body), _PIECE_BYTES):
        yield body[begin : begin + _PIECE_BYTES]


def _trouble(error: httpx.TransportError) -> str:
    """Why there was no answer, in a few words."""
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    return " ".join(str(error).split())[:120] or "the connection was lost"


def _said(address: str, answer: httpx.Response) -> str:
    return str(error_of(address, answer.status_code, answer.content)).removeprefix(f"{address} ")


def _retry_after(answer: httpx.Response) -> float:
    try:
        seconds = float(answer.headers.get("Retry-After", "1"))
    except ValueError:
        seconds = 1.0
    return min(max(seconds, 0.0), _LONGEST_RETRY_AFTER)
