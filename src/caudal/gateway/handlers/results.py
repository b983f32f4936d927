"""Results, in the representation that the client asks for. None is held whole as text."""

import itertools
from collections.abc import Callable, Iterator

from starlette.responses import Response, StreamingResponse

from caudal.formats.keys import REJECTS
from caudal.gateway import accept_header
from caudal.gateway.refusals import Refusal
from caudal.gateway.service import RequestCall, Service
from caudal.jobs.stored_results import StoredResult
from caudal.results import representations
from caudal.results.answers import Result

_WRITTEN: dict[str, Callable[[Result], Iterator[bytes]]] = {
    accept_header.JSON: representations.json_pieces,
    accept_header.CSV: representations.csv_pieces,
    accept_header.PARQUET: representations.parquet_pieces,
}


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
    headers = {"vary": "accept"}
    if found.index.error:
        if form != accept_header.RESULT:
            raise Refusal(422, "query_failed", found.index.error, headers=headers)
        return Response(found.head, media_type=form, headers=headers)
    if form in _WRITTEN:
        rows = await service.threads.run(_rows, found)
        pieces = await service.threads.run(_begun, _WRITTEN[form](rows))
    else:
        head = found.head if form == accept_header.RESULT else b""
        pieces = itertools.chain([head], await service.threads.run(_begun, found.pieces()))
        headers["content-length"] = str(len(head) + found.index.rows.length)
    return StreamingResponse(service.threads.each(pieces), media_type=form, headers=headers)


def _begun(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """With the first piece made: what cannot be written, or is damaged, is refused before the
    answer begins."""
    return itertools.chain([next(pieces, b"")], pieces)


def _rows(found: StoredResult) -> Result:
    return Result(found.index.query, found.index.title, found.rows())
