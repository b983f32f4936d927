"""Health and metrics of the gateway itself, for monitoring. None of it needs a token or names a
job.
"""

import asyncio
from contextlib import suppress

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import Response

from caudal.broker.port import BrokerError
from caudal.errors import StoreError
from caudal.gateway.handlers import quotas
from caudal.gateway.refusals import later
from caudal.gateway.replies import json_answer
from caudal.gateway.service import RequestCall, Service
from caudal.jobs.job_index import INDEX

_PATIENCE_SECONDS = 5.0


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
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await service.takers.run(_ask, service)
    except TimeoutError:
        raise later("unavailable", "the store or the broker is slow", status=503) from None
    return json_answer(HealthBody("ready"))


async def metrics(service: Service, call: RequestCall) -> Response:
    """GET /metrics"""
    del call
    with suppress(BrokerError, TimeoutError):
        async with asyncio.timeout(_PATIENCE_SECONDS):
            depths = await service.takers.run(service.ports.broker.depths)
            service.figures.note_depths(depths)
    quotas.note_fullest(service)
    return Response(service.figures.text(), media_type=CONTENT_TYPE_LATEST)


def _ask(service: Service) -> None:
    try:
        service.ports.store.list(INDEX, recursive=False, limit=1)
    except StoreError as error:
        raise later("unavailable", f"the store does not answer: {error}", status=503) from None
    try:
        service.ports.broker.depths()
    except BrokerError as error:
        raise later("unavailable", f"the broker does not answer: {error}", status=503) from None
