"""Results, in the representation that the client asks for.

Rules
1. As they lie, results are passed on piece by piece. To be converted, they are unpacked one record
   batch at a time, whose unpacked size was declared and checked before; and of that a few rows at a
   time become text. Neither the rows nor the text are ever whole here.
2. What a conversion may hold counts as a body of its owner, from before its first piece until its
   last one was sent: all bodies together are bounded, and so is each owner's share (room.py).
3. A batch or a row that is too large for that can be had as it lies only: 406.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack

import pyarrow as pa
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from caudal.errors import UsageError
from caudal.formats.keys import REJECTS
from caudal.formats.streams import TooLargeError
from caudal.gateway import accept_header
from caudal.gateway.refusals import Refusal
from caudal.gateway.service import RequestCall, Service
from caudal.jobs.stored_results import StoredResult
from caudal.results import representations

_Write = Callable[[Iterable[pa.Table], int], Iterator[bytes]]
_WRITTEN: dict[str, _Write] = {
    accept_header.JSON: representations.json_of,
    accept_header.CSV: representations.csv_of,
    accept_header.PARQUET: representations.parquet_of,
}
_VARY = {"vary": "accept"}
_MOST_ROW = 16 << 20  # that a row weighs as Python values (results/weight.py)
_TEXT_BYTES = 16 << 20  # of the few rows that are text at a time, and what they are made of
_TIMES = 32  # as large as its batch is, at most, what a small batch becomes


async def result(service: Service, call: RequestCall) -> Response:
    """GET /jobs/{job}/results/{query}"""
    return await _answer(service, call, call.name("query"))


async def rejects(service: Service, call: RequestCall) -> Response:
    """GET /jobs/{job}/rejects"""
    return await _answer(service, call, REJECTS)


async def _answer(service: Service, call: RequestCall, query: str) -> Response:
    form = accept_header.choose(call.request.headers.get("accept"))
    if form is None:
        offered = ", ".join(accept_header.OFFERED)
        raise Refusal(406, "not_acceptable", f"a result can be had as {offered}")
    found = await service.threads.run(service.gateway.open_result, *call.job, query)
    if found.index.error:
        if form != accept_header.RESULT:
            raise Refusal(422, "query_failed", found.index.error, headers=_VARY)
        return Response(found.head, media_type=form, headers=_VARY)
    if form in _WRITTEN:
        return await _converted(service, call, found, form)
    head = found.head if form == accept_header.RESULT else b""
    pieces = itertools.chain([head], await service.threads.run(_begun, found.pieces()))
    headers = {**_VARY, "content-length": str(len(head) + found.index.rows.length)}
    return StreamingResponse(service.threads.each(pieces), media_type=form, headers=headers)


async def _converted(
    service: Service, call: RequestCall, found: StoredResult, form: str
) -> Response:
    """The rows in another form, with room for them (rule 2)."""
    async with AsyncExitStack() as stack:
        try:
            largest = await service.threads.run(found.largest)
            held = largest + min(_TEXT_BYTES, _TIMES * largest)
            await stack.enter_async_context(service.bodies.holding(call.caller.owner, held))
            written = _WRITTEN[form](found.parts(), _MOST_ROW)
            pieces = await service.threads.run(_begun, written)
        except (TooLargeError, UsageError) as error:
            offered = f"ask for {accept_header.ARROW}"
            raise Refusal(406, "not_acceptable", f"{error}; {offered}") from error
        response = _Held(service.threads.each(pieces), media_type=form, headers=_VARY)
        response.room = stack.pop_all()
        return response
    raise AssertionError  # the stack swallows nothing


class _Held(StreamingResponse):
    """An answer that gives its room back when it was sent, however that ends."""

    room: AsyncExitStack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See starlette."""
        async with self.room:
            await super().__call__(scope, receive, send)


def _begun(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """With the first piece made: what cannot be written, or is damaged, is refused before the
    answer begins."""
    return itertools.chain([next(pieces, b"")], pieces)
