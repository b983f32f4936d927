"""Quotas: what owners use and what they may use."""

from starlette.responses import Response

from caudal.formats.quotas import IN_STORE, Quota
from caudal.formats.replies import QuotaPage, Used
from caudal.gateway.replies import json_answer
from caudal.gateway.service import RequestCall, Service


async def listing(service: Service, call: RequestCall) -> Response:
    """GET /quotas"""
    names = service.tokens.names() if call.caller.is_admin else (call.owner,)
    owners = {name: {one.value: used(service, name, one) for one in Quota} for name in names}
    return json_answer(QuotaPage(owners))


def used(service: Service, owner: str, quota: Quota) -> Used:
    """Return what one owner uses of one quota."""
    most = service.shares.limit(owner, quota)
    if quota not in IN_STORE:
        return Used(service.shares.held(owner, quota), most)
    counted = service.census.is_wanted()
    return Used(service.census.used(owner, quota) if counted else None, most)


def note_fullest(service: Service) -> None:
    """Set the metric of each quota to the highest usage of any owner, without naming the owner."""
    service.figures.stale_files.set(service.stale_files())
    for quota in Quota:
        found = [used(service, name, quota) for name in service.tokens.names()]
        parts = [one.used / one.most for one in found if one.used and one.most]
        service.figures.quota_fullest.labels(quota.value).set(max(parts, default=0.0))
