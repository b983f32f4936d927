"""Questions to a dataset of a cluster: from an application to results, without sending files."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from time import monotonic

import httpx
import msgspec

from caudal.client.bodies import lines_of, take_reply
from caudal.client.events import parse_events
from caudal.client.http import HttpGateways, dataset_path
from caudal.client.refusals import error_of
from caudal.client.stalled import Noticing
from caudal.client.submit import Watching
from caudal.client.upload_threads import LOOK_SOON_SECONDS, NEWS_SECONDS
from caudal.decoding import decode_json
from caudal.errors import FormatError
from caudal.formats.job import Options, Request, Text
from caudal.formats.outcomes import PLANNED_ELSEWHERE, Outcome
from caudal.formats.replies import Question, SeenVersion
from caudal.jobs.interfaces import GoneError, UnreachableError
from caudal.jobs.retry import TELL_SECONDS, no_answer, trying_again
from caudal.jobs.upload import Upload, Uploader, UploadRequest
from caudal.model import Application, ParameterValue
from caudal.process.clock import SystemClock, new_id

# Every face asks with the same number of partitions, so that all share map outputs and answers.
QUESTION_OPTIONS = Options(partitions=4)

_LOOK_SECONDS = 0.1
_MOST_AGAIN = 4  # times that a question is planned anew
_MOST_EVENT_BYTES = 1 << 10


@dataclass(frozen=True)
class DatasetQuestion:
    """The queries of an application over a dataset; without a version, over its newest."""

    app: Application
    dataset: str
    version: int | None = None
    queries: tuple[str, ...] = ()  # empty: all
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
    options: Options = field(default_factory=Options)

    @property
    def asked(self) -> tuple[str, ...]:
        """Return the queries, in order."""
        return self.queries or tuple(query.name for query in self.app.queries)


@dataclass(frozen=True)
class DatasetAnswer:
    """What became of a question: its job, the version that was asked, the outcome and results."""

    job_id: str
    version: int
    outcome: Outcome | None  # None: the client did not wait
    results: Mapping[str, bytes]


def ask(
    question: DatasetQuestion,
    gateways: HttpGateways,
    watching: Watching | None = None,
    *,
    detach: bool = False,
) -> DatasetAnswer:
    """Ask, and collect the results; with `detach`, do not wait for them.

    Some times, it is asked again: if nobody computes it, because the cluster is upgraded meanwhile,
    and nothing of it was answered; and if its job is gone, because somebody else asked the same,
    and it was begun anew.
    """
    request = Request(
        Text.of(question.app), question.queries, dict(question.parameters), question.options
    )
    asked = Question(request, question.version, new_id())
    gateways.begin_at(asked.once)
    for _ in range(_MOST_AGAIN):
        try:
            answer = _ask_once(question.dataset, asked, gateways, watching, detach=detach)
        except GoneError:
            continue
        if answer.results or not _must_be_planned_anew(answer.outcome):
            return answer
    return _ask_once(question.dataset, asked, gateways, watching)


def _must_be_planned_anew(outcome: Outcome | None) -> bool:
    return (
        outcome is not None
        and outcome.state == "failed"
        and outcome.reason.startswith(PLANNED_ELSEWHERE)
    )


def _ask_once(
    dataset: str,
    asked: Question,
    gateways: HttpGateways,
    watching: Watching | None,
    *,
    detach: bool = False,
) -> DatasetAnswer:
    request, receipt = asked.request, gateways.ask_dataset(dataset, asked)
    if detach:
        return DatasetAnswer(receipt.job, receipt.version, None, {})
    listener = watching or Noticing(gateways.tell)
    client = Uploader(
        gateways,
        SystemClock(gateways.stop),
        pause_seconds=_LOOK_SECONDS,
        first_pause_seconds=LOOK_SOON_SECONDS,
        news_seconds=NEWS_SECONDS,
        listener=listener,
    )
    errand = Upload(client, UploadRequest(receipt.job, request, {}), receipt.run, receipt.tables)
    errand.nothing_to_send()
    if watching is not None:
        watching.began(receipt.job, {}, errand.look())
    outcome = errand.follow()
    return DatasetAnswer(receipt.job, receipt.version, outcome, errand.results)


def versions(
    gateways: HttpGateways, dataset: str, stopping: Callable[[], bool] = lambda: False
) -> Iterator[SeenVersion]:
    """Yield the newest version, then later ones, from any gateway that answers.

    Versions that come at the same time may be given as one: the newest. Never ends by itself. A
    gateway may end a stream without a version: that is an answer, too.
    """
    gateways.begin_at(new_id())
    last, rounds, outage = -1, 0, _Outage(gateways)
    while not stopping():
        troubles: dict[str, str] = {}
        for address in gateways.in_turn():
            try:
                for seen in _from_one(gateways, dataset, address, last):
                    outage.ends()
                    if seen is not None:
                        rounds = 0
                        gateways.prefer(address)
                    if seen is not None and seen.version > last:
                        last = seen.version
                        yield seen
            except (httpx.TransportError, httpx.StreamError, UnreachableError, FormatError) as why:
                troubles[address] = str(why) or type(why).__name__
                outage.goes_on()
        rounds += 1
        outage.tell(troubles)
        gateways.pause(rounds)


class _Outage:
    """The time in which no gateway answers: told once, and given up at last (jobs/retry.py)."""

    def __init__(self, gateways: HttpGateways) -> None:
        self._gateways = gateways
        self.ends()

    def ends(self) -> None:
        self._since: float | None = None
        self._is_told = False

    def goes_on(self) -> None:
        self._since = monotonic() if self._since is None else self._since

    def tell(self, troubles: Mapping[str, str]) -> None:
        """Tell a person after some seconds; raise UnreachableError after the time of patience."""
        seconds, patience = self._seconds(), self._gateways.patience_seconds
        if seconds is None:
            return
        if seconds >= patience:
            raise no_answer(troubles, patience)
        if seconds >= TELL_SECONDS and not self._is_told:
            self._is_told = True
            self._gateways.tell_rarely(trying_again(troubles, patience))

    def _seconds(self) -> float | None:
        return None if self._since is None else monotonic() - self._since


def _from_one(
    gateways: HttpGateways, dataset: str, address: str, last: int
) -> Iterator[SeenVersion | None]:
    """Yield the versions that a gateway sends; None for any other sign of life."""
    headers = {"Accept": "text/event-stream"}
    if last >= 0:
        headers["Last-Event-ID"] = str(last)
    answer = gateways.stream(dataset_path(dataset, "events"), address, headers)
    try:
        if not answer.is_success:
            error = error_of(address, answer.status_code, take_reply(answer))
            if answer.status_code == 429 or answer.status_code >= 500:
                raise UnreachableError(str(error))
            raise error
        yield None
        for event in parse_events(lines_of(answer, _MOST_EVENT_BYTES)):
            yield _seen(event.data) if event is not None and event.name == "version" else None
    finally:
        answer.close()


def _seen(data: str) -> SeenVersion:
    try:
        return decode_json(data, SeenVersion)
    except msgspec.MsgspecError as error:
        raise FormatError(f"sent an event of unknown form: {error}") from None
