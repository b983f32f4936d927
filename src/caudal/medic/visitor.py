"""Questions to the medics of a cluster, from gateways and from the command line."""

import asyncio
from collections.abc import Sequence

from caudal.formats.medic_status import FaultKind, ProcessStatus, StatusReply
from caudal.medic.supervision import State, SupervisionTiming
from caudal.medic.talk import StrikeOrder, StrikeReply, ask, converse
from caudal.process.wire import Seal

_MOMENT_SECONDS = 0.2
_SILENCE_SECONDS = SupervisionTiming().silence  # who has listened for so long has heard all
MedicPlace = tuple[str, int]  # address and port


async def newest_view(places: Sequence[MedicPlace], seal: Seal) -> StatusReply | None:
    """Return the best view (`best`) of those that answer; None if none does."""
    waiting = {asyncio.create_task(ask(*place, seal)) for place in places}
    answers: list[StatusReply] = []
    while waiting:  # wait for all; once a leader has answered only briefly: one may be frozen
        seconds = _MOMENT_SECONDS if _leading(answers) else None
        done, waiting = await asyncio.wait(
            waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        answers += [told for one in done if (told := one.result()) is not None]
        if not done:
            break
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    return best(answers)


def best(answers: Sequence[StatusReply]) -> StatusReply | None:
    """Return the leader's view, or without a leader the newest; None if there is none.

    A medic that has just started has not heard every process yet, even if it leads already. So
    others count first.
    """
    known = [one for one in answers if one.awake is None or one.awake >= _SILENCE_SECONDS]
    able = known or answers
    return max(_leading(able) or able, key=lambda one: one.term, default=None)


def _leading(answers: Sequence[StatusReply]) -> list[StatusReply]:
    return [one for one in answers if one.medic == one.leader]


class MedicVisitor:
    """The medics as a gateway reaches them. Any thread may call it."""

    def __init__(self, name: str, places: Sequence[MedicPlace], seal: Seal) -> None:
        self.name = name  # of the gateway
        self._places = tuple(places)
        self._seal = seal

    def look(self) -> StatusReply | None:
        """Return the newest view of all processes; None if no medic answers."""
        return asyncio.run(newest_view(self._places, self._seal))

    def strike(self, name: str, incarnation: int, fault: FaultKind) -> str:
        """Have a process hit by a medic of its host; return why not, empty if it was hit."""
        told = self.look()
        if told is None:
            return "no medic answers"
        place = _executor(told.processes, name)
        if place is None:
            return f"no other medic of the host of {name} is healthy: nothing would restart it"
        order = StrikeOrder(name, incarnation, fault)
        reply = asyncio.run(converse(*place, self._seal, order))
        return reply.refusal if isinstance(reply, StrikeReply) else "the medic did not answer"


def _executor(processes: Sequence[ProcessStatus], victim: str) -> MedicPlace | None:
    """Return the place of a healthy medic on the victim's host, which is not the victim."""
    hosts = {one.host for one in processes if one.name == victim}
    for one in processes:
        is_able = one.kind == "medic" and one.state == State.HEALTHY and one.name != victim
        if is_able and one.host in hosts:
            address, _, port = one.address.rpartition(":")
            return address, int(port)
    return None
