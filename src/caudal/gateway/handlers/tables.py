"""Tables: their batches and their end."""

import logging
from collections.abc import Mapping
from functools import partial

import msgspec
from starlette.responses import Response

from caudal.formats.outcomes import End
from caudal.formats.quotas import Quota
from caudal.gateway.bodies import announced_size, json_body, read_body, require_type
from caudal.gateway.census import stored_size
from caudal.gateway.refusals import Refusal
from caudal.gateway.replies import json_answer, receipt_answer
from caudal.gateway.service import RequestCall, Service
from caudal.process.logs import fields

BATCH = "application/vnd.caudal.batch"

_log = logging.getLogger(__name__)


class DigestBody(msgspec.Struct, frozen=True):
    """The digest of a batch's records."""

    digest: str


async def put_batch(service: Service, call: RequestCall) -> Response:
    """PUT /jobs/{job}/tables/{table}/batches/{number}

    The gateway decides whether the batch is wanted and whether there is room for it before it
    reads the body. A client that sends `Expect: 100-continue` has not sent the body at that point.
    """
    number, most = call.number("number"), service.limits.batch_bytes
    only = call.request.query_params.get("only", "false") == "true"
    require_type(call.request, BATCH)
    size = announced_size(call.request, most)
    admission = await service.takers.run(
        service.gateway.admit, *call.job, call.name("table"), number
    )
    space = await space_of(service, call, size)
    with service.census.holding(call.owner, space) as hold:
        async with service.bodies.holding(call.owner, size):
            data = await read_body(call.request, most, service.limits)
            put = partial(service.gateway.put_admitted, admission, data, only=only)
            receipt = await service.takers.run(put)
        if receipt.new:
            hold.lasts({Quota.STORED: stored_size(len(data))})
    service.figures.body_bytes.inc(len(data))
    if receipt.new and receipt.ended:
        _log_end(call)
    return receipt_answer(receipt)


async def space_of(service: Service, call: RequestCall, size: int) -> Mapping[Quota, int]:
    """Return what a batch takes of the owner's quotas: nothing if it is stored already."""
    space = {Quota.STORED: stored_size(size)}
    refusal = service.lasting_refusal(call.owner, space)
    if refusal is None:
        return space
    batch = call.name("table"), call.number("number")
    if await service.threads.run(service.gateway.stored_digest, *call.job, *batch) is None:
        raise refusal
    return {}


async def stored_digest(service: Service, call: RequestCall) -> Response:
    """GET /jobs/{job}/tables/{table}/batches/{number}"""
    table, number = call.name("table"), call.number("number")
    digest = await service.threads.run(service.gateway.stored_digest, *call.job, table, number)
    if digest is None:
        raise Refusal(404, "no_batch", f"batch {number} of table {table} has not arrived")
    return json_answer(DigestBody(digest))


async def put_end(service: Service, call: RequestCall) -> Response:
    """PUT /jobs/{job}/tables/{table}/end"""
    table = call.name("table")
    async with json_body(service, call, End) as end:
        if end.batches < 0 or end.bytes < 0:
            raise Refusal(400, "bad_request", "batches and bytes cannot be negative")
        receipt = await service.takers.run(service.gateway.put_end, *call.job, table, end)
    if receipt.new:
        _log_end(call)
    return receipt_answer(receipt)


def _log_end(call: RequestCall) -> None:
    _log.info("table ended", extra=fields(job=call.name("job"), table=call.name("table")))
