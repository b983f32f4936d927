"""Event streams. Opening one counts as a sign of life of the client; keeping it open does not."""

from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse

from caudal.gateway import events
from caudal.gateway.refusals import Refusal
from caudal.gateway.service import RequestCall, Service

EVENTS = "text/event-stream"
_DIGITS = 9


async def job(service: Service, call: RequestCall) -> Response:
    """GET /jobs/{job}/events"""
    life = await service.threads.run(service.gateway.watch, *call.job)
    first = await service.threads.run(service.gateway.look, life)  # refuses before the stream
    return event_stream(events.job_events(service, life, first))


async def preview(service: Service, call: RequestCall) -> Response:
    """GET /jobs/{job}/results/{query}/preview"""
    first = last_event(call) + 1
    found = await service.threads.run(service.gateway.preview, *call.job, call.name("query"))
    return event_stream(events.preview_events(service, found, first))


def last_event(call: RequestCall) -> int:
    """Return the number of the last event that the client has; -1 if it has none."""
    last = call.request.headers.get("last-event-id", "")
    if not last:
        return -1
    if not last.isascii() or not last.isdecimal() or len(last) > _DIGITS:
        raise Refusal(400, "bad_request", "Last-Event-ID must be the number of an event")
    return int(last)


def event_stream(pieces: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(pieces, media_type=EVENTS, headers={"cache-control": "no-cache"})
