"""Request bodies: bounded in size and time. The bounds are checked before a body is read."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import msgspec
from starlette.requests import Request

from caudal.decoding import decode_json
from caudal.gateway.limits import GatewayLimits
from caudal.gateway.refusals import Refusal
from caudal.gateway.service import RequestCall, Service

Content = TypeVar("Content")
JSON = "application/json"
_DECODED = 8  # a decoded body takes about this many times its size in memory


def announced_size(request: Request, most: int) -> int:
    """Return the size that the headers announce, or `most` if they announce none."""
    text = request.headers.get("content-length", "")
    if text.isdecimal() and int(text) > most:
        raise _too_large(most)
    return int(text) if text.isdecimal() else most


def require_type(request: Request, wanted: str, *, optional: bool = False) -> None:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != wanted and (given or not optional):
        raise Refusal(415, "unsupported_media_type", f"the content type must be {wanted}")


async def read_body(request: Request, most: int, limits: GatewayLimits) -> bytes:
    """Read the whole body. After `slow_seconds` its mean rate must reach `least_rate`."""
    pieces: list[bytes] = []
    size, elapsed = 0, asyncio.get_running_loop().time
    began = elapsed()
    try:
        async with asyncio.timeout(limits.body_seconds):
            while True:
                enough = began + max(limits.slow_seconds, size / limits.least_rate)
                async with asyncio.timeout(min(limits.idle_seconds, enough - elapsed())):
                    message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise Refusal(400, "bad_request", "the body is incomplete")
                pieces.append(message.get("body", b""))
                size += len(pieces[-1])
                if size > most:
                    raise _too_large(most)
                if not message.get("more_body", False):
                    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    except TimeoutError:
        told = f"at least {limits.least_rate} bytes a second"
        slow = Refusal(408, "too_slow", f"the body did not arrive in time ({told}): send it again")
        slow.headers["connection"] = "close"
        raise slow from None


@asynccontextmanager
async def json_body(
    service: Service, call: RequestCall, kind: type[Content]
) -> AsyncIterator[Content]:
    """Decode a JSON body into `kind`. It holds room for the length of the block."""
    require_type(call.request, JSON, optional=True)
    most = service.limits.request_bytes
    size = _DECODED * announced_size(call.request, most)
    async with service.bodies.holding(call.caller.owner, size):
        data = await read_body(call.request, most, service.limits)
        yield _decoded(data, kind)


def _decoded(data: bytes, kind: type[Content]) -> Content:
    try:
        return decode_json(data, kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Refusal(400, "bad_request", f"the body is not a {kind.__name__}: {error}") from None


def _too_large(most: int) -> Refusal:
    return Refusal(413, "too_large", f"at most {most} bytes are accepted here: send less at once")
