"""Medics asked on their own hosts, where no fault of the network comes between."""

import asyncio
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from caudal.cluster.roster import Member, medics
from caudal.formats.medic_status import StatusReply
from caudal.medic.election import Role
from caudal.medic.supervision import State
from caudal.medic.talk import ask
from caudal.process.wire import Seal
from tests.partitions.judging import RoleChange
from tests.partitions.network import Network

_LOOK_SECONDS = 0.2
_ASK_SECONDS = 1.5


@dataclass
class Watch:
    """One thread per host asks its medics several times a second."""

    network: Network
    members: tuple[Member, ...]
    seal: Seal
    told: dict[str, StatusReply | None] = field(default_factory=dict)
    changes: list[RoleChange] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        for host in sorted({one.host for one in medics(self.members)}):
            thread = threading.Thread(target=self._run, args=(host,), name=f"watch-{host}")
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def trouble(self) -> str:
        """Return why the cluster is not whole; "" if all medics agree that it is."""
        told = dict(self.told)
        if silent := [one.name for one in medics(self.members) if told.get(one.name) is None]:
            return f"silent: {', '.join(silent)}"
        views = [one for one in told.values() if one is not None]
        if len({one.leader for one in views}) > 1 or sum(map(_leads, views)) != 1:
            return f"leaders: {', '.join(sorted({one.leader or '?' for one in views}))}"
        names = {one.name for one in self.members}
        ill = sorted(
            f"{one.name} {one.state} (says {view.medic})"
            for view in views
            for one in view.processes
            if one.name in names and one.state != State.HEALTHY
        )
        return ", ".join(ill[:4])

    def _run(self, host: str) -> None:
        self.network.enter(host)
        here = [one for one in medics(self.members) if one.host == host]
        with asyncio.Runner() as runner:
            while not self._stopping.wait(_LOOK_SECONDS):
                self._note(runner.run(_answers(here, self.seal)))

    def _note(self, answers: Mapping[str, StatusReply | None]) -> None:
        now = time.monotonic()
        for medic, reply in answers.items():
            if _leads(reply) != _leads(self.told.get(medic)):
                self.changes.append(RoleChange(now, medic, _leads(reply)))
            self.told[medic] = reply


async def _answers(here: list[Member], seal: Seal) -> dict[str, StatusReply | None]:
    asked = (ask(one.address, one.port, seal, _ASK_SECONDS) for one in here)
    told = await asyncio.gather(*asked)
    return {one.name: reply for one, reply in zip(here, told, strict=True)}


def _leads(reply: StatusReply | None) -> bool:
    return reply is not None and reply.role == Role.LEADING
