"""The cluster: its processes, lanes and services; strikes of an admin.

What a worker computes names tables and queries of its job, so only an admin is told.
"""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec
from starlette.responses import Response

from caudal.broker.port import BrokerError
from caudal.errors import StoreError
from caudal.formats.medic_status import FaultKind, ProcessStatus, StatusReply
from caudal.formats.replies import (
    ClusterPage,
    SamplePage,
    ServiceHealth,
    StrikeReceipt,
    StrikeRequest,
)
from caudal.formats.task_facts import ProcessFact
from caudal.gateway.bodies import json_body
from caudal.gateway.refusals import Refusal
from caudal.gateway.replies import json_answer
from caudal.gateway.room import Threads
from caudal.gateway.service import RequestCall, Service
from caudal.jobs.job_index import INDEX
from caudal.jobs.shown_facts import KEPT_SECONDS, samples_since

Process = TypeVar("Process", ProcessStatus, ProcessFact)

_PATIENCE_SECONDS = 3.0
_DIGITS = len(str(int(KEPT_SECONDS)))
_FAULTS = {"kill": FaultKind.KILL, "freeze": FaultKind.FREEZE}
_NOBODY = StatusReply("", "", 0, "", [])


async def show(service: Service, call: RequestCall) -> Response:
    """GET /cluster"""
    lanes: dict[str, int] = {}

    def depths() -> None:
        lanes.update({lane.value: depth for lane, depth in service.ports.broker.depths().items()})

    def first_key() -> None:
        service.ports.store.list(INDEX, recursive=False, limit=1)

    told, store, broker = await asyncio.gather(
        service.threads.run(service.peers.look),
        _health(service.threads, first_key),
        _health(service.takers, depths),
    )
    seen = told or _NOBODY
    return json_answer(
        ClusterPage(
            gateway=service.peers.name,
            gateways=_gateways(seen),
            admin=call.caller.is_admin,
            chaos=seen.chaos,
            leader=seen.leader,
            term=seen.term,
            medic=seen.medic,
            processes=tuple(_told(one, call) for one in seen.processes),
            lanes=lanes,
            store=store,
            broker=broker,
        )
    )


def _told(one: Process, call: RequestCall) -> Process:
    """Return a process as this caller may see it."""
    hidden = "worker-" in one.name and not call.caller.is_admin
    return msgspec.structs.replace(one, detail="") if hidden else one


def _gateways(told: StatusReply) -> tuple[str, ...]:
    return tuple(one.address for one in told.processes if one.kind == "gateway")


async def history(service: Service, call: RequestCall) -> Response:
    """GET /cluster/history"""
    text = call.request.query_params.get("seconds", "600")
    is_number = text.isascii() and text.isdecimal() and len(text) <= _DIGITS
    seconds = int(text) if is_number else 0
    if not 1 <= seconds <= KEPT_SECONDS:
        raise Refusal(400, "bad_request", f"seconds must lie between 1 and {KEPT_SECONDS:.0f}")
    since = service.ports.clock.now() - seconds

    def read() -> SamplePage:
        return SamplePage(
            tuple(
                msgspec.structs.replace(one, processes=tuple(_told(p, call) for p in one.processes))
                for one in samples_since(service.ports.store, since)
            )
        )

    return json_answer(await service.threads.run(read))


async def strike(service: Service, call: RequestCall) -> Response:
    """POST /cluster/strikes"""
    async with json_body(service, call, StrikeRequest) as asked:
        fault = _FAULTS[asked.fault]
        at = service.ports.clock.now()
        refusal = await service.threads.run(
            service.peers.strike, asked.process, asked.incarnation, fault
        )
    if refusal:
        raise Refusal(409, "conflict", f"{asked.process} was not {fault}: {refusal}")
    return json_answer(StrikeReceipt(asked.process, asked.incarnation, at))


async def _health(threads: Threads, ask: Callable[[], None]) -> ServiceHealth:
    began = time.monotonic()
    reason = ""
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await threads.run(ask)
    except (StoreError, BrokerError) as error:
        reason = str(error)
    except TimeoutError:
        reason = "it does not answer"
    return ServiceHealth(not reason, round(time.monotonic() - began, 4), reason)
