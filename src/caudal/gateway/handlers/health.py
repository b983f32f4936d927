"""Health and metrics of the gateway itself, for monitoring. None of it needs a token or names a
job.

Probes are answered whatever else is asked: a gateway that refused them would be taken out by a
balancer, or restarted. So they cost next to nothing (shared_answers.py).
"""

from collections.abc import Mapping
from contextlib import suppress

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import Response

from caudal.broker.port import BrokerError
from caudal.errors import StoreError
from caudal.formats.keys import Lane
from caudal.gateway.handlers import quotas
from caudal.gateway.refusals import later
from caudal.gateway.replies import json_answer
from caudal.gateway.service import RequestCall, Service
from caudal.jobs.job_index import INDEX


class HealthBody(msgspec.Struct, frozen=True):
    status: str


async def healthz(service: Service, call: RequestCall) -> Response:
    """GET /healthz: answer while the event loop runs."""
    del service, call
    return json_answer(HealthBody("alive"))


async def readyz(service: Service, call: RequestCall) -> Response:
    """GET /readyz: check that store and broker answer and that the process is not stopping."""
    del call
    if service.stopping():
        raise later("unavailable", "this gateway is stopping", status=503)
    try:
        reason = await service.readiness.of(lambda: _unready(service))
    except TimeoutError:
        reason = "the store or the broker is slow"
    if reason:
        raise later("unavailable", reason, status=503)
    return json_answer(HealthBody("ready"))


async def metrics(service: Service, call: RequestCall) -> Response:
    """GET /metrics"""
    del call
    with suppress(TimeoutError):
        service.figures.note_depths(await service.depths.of(lambda: _depths(service)))
    quotas.note_fullest(service)
    return Response(service.figures.text(), media_type=CONTENT_TYPE_LATEST)


def _unready(service: Service) -> str:
    """Return why this gateway cannot serve; empty if it can."""
    try:
        service.ports.store.list(INDEX, recursive=False, limit=1)
    except StoreError as error:
        return f"the store does not answer: {error}"
    try:
        service.ports.broker.depths()
    except BrokerError as error:
        return f"the broker does not answer: {error}"
    return ""


def _depths(service: Service) -> Mapping[Lane, int]:
    """Return how many tasks wait; nothing if the broker does not answer."""
    try:
        return service.ports.broker.depths()
    except BrokerError:
        return {}
