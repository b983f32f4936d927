"""Results, in the representation that the client asks for.

Rules
1. A result in its stored form is passed on piece by piece. For a conversion it is unpacked one
   record batch at a time; the unpacked size was declared and is checked first. A few rows of it at
   a time become text. Neither all rows nor the whole text are ever in memory.
2. The memory of a conversion counts as a body of its owner, from before its first piece until its
   last one was sent. All bodies together are bounded, and so is each owner's share (room.py).
3. A batch or a row that is too large for that is available in its stored form only: 406.
"""

import itertools
from collections.abc import Iterable, Iterator
from contextlib import AsyncExitStack

import pyarrow as pa
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from caudal.errors import UsageError
from caudal.formats.keys import REJECTS
from caudal.formats.report_records import with_records
from caudal.formats.streams import TooLargeError
from caudal.gateway import accept_header
from caudal.gateway.refusals import Refusal
from caudal.gateway.service import RequestCall, Service
from caudal.jobs.stored_results import StoredResult, Window
from caudal.results.representations import parquet_of

_WRITTEN = (accept_header.JSON, accept_header.CSV, accept_header.PARQUET)
_VARY = {"vary": "accept"}
_MOST_ROW = 16 << 20  # largest weight of a row as Python values (results/weight.py)
_TEXT_BYTES = 16 << 20  # of the few rows that are text at a time, with their source values
_AT_ONCE_BYTES = 256 << 10  # a result of at most so many bytes is sent whole
_DIGITS = 12  # of a row's number, at most
_TIMES = 32  # a small batch grows to at most this many times its size


async def result(service: Service, call: RequestCall) -> Response:
    """GET /jobs/{job}/results/{query}"""
    return await _answer(service, call, call.name("query"))


async def rejects(service: Service, call: RequestCall) -> Response:
    """GET /jobs/{job}/rejects"""
    return await _answer(service, call, REJECTS)


async def _answer(service: Service, call: RequestCall, query: str) -> Response:
    window = _window(call)
    form = accept_header.choose(call.request.headers.get("accept"))
    if form is None:
        offered = ", ".join(accept_header.OFFERED)
        raise Refusal(406, "not_acceptable", f"a result is available as {offered}")
    found = await service.threads.run(service.gateway.open_result, *call.job, query)
    if found.index.error:
        if form != accept_header.RESULT:
            raise Refusal(422, "query_failed", found.index.error, headers=_VARY)
        return Response(found.head, media_type=form, headers=_VARY)
    if form in _WRITTEN:
        return await _converted(service, call, found, form, window)
    if window is not None:
        raise Refusal(406, "not_acceptable", "offset and limit need JSON, CSV or Parquet")
    head = found.head if form == accept_header.RESULT else b""
    if found.index.rows.length <= _AT_ONCE_BYTES:
        rows = await service.threads.run(b"".join, found.pieces())
        return Response(head + rows, media_type=form, headers=_VARY)
    pieces = itertools.chain([head], await service.threads.run(_begun, found.pieces()))
    headers = {**_VARY, "content-length": str(len(head) + found.index.rows.length)}
    return StreamingResponse(service.threads.each(pieces), media_type=form, headers=headers)


def _window(call: RequestCall) -> Window | None:
    """Return which rows are asked for; None for all."""
    asked = call.request.query_params
    if "offset" not in asked and "limit" not in asked:
        return None
    return Window(_number(asked.get("offset", "0")), _number(asked.get("limit", "1000")))


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > _DIGITS:
        raise Refusal(400, "bad_request", "offset and limit must be whole numbers")
    return int(text)


async def _converted(
    service: Service, call: RequestCall, found: StoredResult, form: str, window: Window | None
) -> Response:
    """Return the rows converted to `form`, with memory reserved for them (rule 2)."""
    async with AsyncExitStack() as stack:
        try:
            largest = await service.threads.run(found.largest)
            held = largest + min(_TEXT_BYTES, _TIMES * largest)
            await stack.enter_async_context(service.bodies.holding(call.caller.owner, held))
            written = _written(form, _parts(found, form, window))
            pieces = await service.threads.run(_begun, written)
        except (TooLargeError, UsageError) as error:
            offered = f"ask for {accept_header.ARROW}"
            raise Refusal(406, "not_acceptable", f"{error}; {offered}") from error
        response = _Held(service.threads.each(pieces), media_type=form, headers=_VARY)
        response.room = stack.pop_all()
        return response
    raise AssertionError  # the stack suppresses no exception


def _parts(found: StoredResult, form: str, window: Window | None) -> Iterator[pa.Table]:
    """Return the rows; those of the rejects report have raw records only in JSON."""
    parts = found.parts(window=window)
    if found.index.query != REJECTS or form != accept_header.JSON:
        return parts
    return with_records(parts, found.index.records, window.offset if window else 0)


def _written(form: str, parts: Iterable[pa.Table]) -> Iterator[bytes]:
    from caudal.results.text_formats import csv_of, json_of  # loads slowly

    if form == accept_header.PARQUET:
        return parquet_of(parts)
    return (json_of if form == accept_header.JSON else csv_of)(parts, _MOST_ROW)


class _Held(StreamingResponse):
    """An answer that releases its reserved memory when sending ends, also after an error."""

    room: AsyncExitStack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See starlette."""
        async with self.room:
            await super().__call__(scope, receive, send)


def _begun(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Make the first piece now: a damaged or unwritable result is refused before the answer."""
    return itertools.chain([next(pieces, b"")], pieces)
