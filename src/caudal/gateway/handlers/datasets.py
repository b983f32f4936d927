"""Datasets: applications for new ones, offers of loads, lists, versions, readers, deletion."""

import logging

from starlette.responses import Response

from caudal.formats.dataset_replies import ApplicationPage
from caudal.formats.job import Request
from caudal.formats.quotas import Quota
from caudal.gateway.bodies import json_body
from caudal.gateway.census import stored_size
from caudal.gateway.refusals import Refusal
from caudal.gateway.replies import json_answer
from caudal.gateway.service import RequestCall, Service
from caudal.process.logs import fields

MOST_VERSIONS = 10_000
_VERSIONS = 1_000  # that are returned unless the request says how many
_SHARE_OBJECTS = 2  # who may read it, and the index
_log = logging.getLogger(__name__)


async def offer(service: Service, call: RequestCall) -> Response:
    """POST /datasets/{dataset}/offers"""
    async with json_body(service, call, Request) as request:
        who, name = call.caller.owner, call.name("dataset")
        return json_answer(await service.threads.run(service.datasets.offer, who, name, request))


async def applications(service: Service, call: RequestCall) -> Response:
    """GET /applications"""
    del call
    return json_answer(ApplicationPage(service.applications()))


async def listing(service: Service, call: RequestCall) -> Response:
    """GET /datasets"""
    who, owner = call.caller.owner, _owner(call)
    if who != owner and not call.caller.is_admin:
        raise Refusal(403, "not_allowed", "only a token with the right admin sees others' datasets")
    return json_answer(await service.threads.run(service.datasets.listing, who, owner))


async def one(service: Service, call: RequestCall) -> Response:
    """GET /datasets/{dataset}"""
    return json_answer(
        await service.threads.run(
            lambda: service.datasets.one(*_whose(call), is_admin=call.caller.is_admin)
        )
    )


async def versions(service: Service, call: RequestCall) -> Response:
    """GET /datasets/{dataset}/versions"""
    text = call.request.query_params.get("last", str(_VERSIONS))
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(MOST_VERSIONS))
    if not is_number or not 1 <= int(text) <= MOST_VERSIONS:
        raise Refusal(400, "bad_request", f"last must lie between 1 and {MOST_VERSIONS}")
    return json_answer(
        await service.threads.run(
            lambda: service.datasets.versions(
                *_whose(call), int(text), is_admin=call.caller.is_admin
            )
        )
    )


async def tables(service: Service, call: RequestCall) -> Response:
    """GET /datasets/{dataset}/tables"""
    return json_answer(
        await service.threads.run(
            lambda: service.datasets.tables(*_whose(call), is_admin=call.caller.is_admin)
        )
    )


async def parts(service: Service, call: RequestCall) -> Response:
    """GET /datasets/{dataset}/parts/{table}"""
    who = call.caller.owner
    name, table = call.name("dataset"), call.name("table")
    return json_answer(await service.threads.run(service.datasets.parts, who, name, table))


async def share(service: Service, call: RequestCall) -> Response:
    """PUT /datasets/{dataset}/readers/{reader}"""
    names = call.name("dataset"), call.name("reader")
    space = await _space(service, call, *names)
    with service.census.holding(call.caller.owner, space) as hold:
        shared = await service.threads.run(service.datasets.share, call.caller.owner, *names)
        hold.lasts(space)
    return json_answer(shared)


async def _space(service: Service, call: RequestCall, name: str, reader: str) -> dict[Quota, int]:
    """Return what a share takes of the owner's quotas: nothing if it is there already."""
    who = call.caller.owner
    if await service.threads.run(service.datasets.is_shared, who, name, reader):
        return {}
    space = {Quota.STORED: _SHARE_OBJECTS * stored_size(0)}
    if (refusal := service.lasting_refusal(who, space)) is not None:
        raise refusal
    return space


async def unshare(service: Service, call: RequestCall) -> Response:
    """DELETE /datasets/{dataset}/readers/{reader}"""
    names = call.name("dataset"), call.name("reader")
    return json_answer(
        await service.threads.run(service.datasets.unshare, call.caller.owner, *names)
    )


async def delete(service: Service, call: RequestCall) -> Response:
    """DELETE /datasets/{dataset}"""
    deleted = await service.threads.run(
        lambda: service.datasets.delete(*_whose(call), is_admin=call.caller.is_admin)
    )
    _log.info("dataset deleted", extra=fields(dataset=f"{deleted.owner}/{deleted.name}"))
    return json_answer(deleted)


def _owner(call: RequestCall) -> str:
    return call.request.query_params.get("owner", call.caller.owner)


def _whose(call: RequestCall) -> tuple[str, str, str]:
    """Return who asks, whose dataset it is, and its name."""
    return call.caller.owner, _owner(call), call.name("dataset")
