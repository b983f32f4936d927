"""Results, in the representation that the client asks for. None is held whole as text."""

import itertools
from collections.abc import Callable, Iterator

import pyarrow as pa
from starlette.responses import Response, StreamingResponse

from caudal import representing
from caudal.answers import Result
from caudal.core.tasks import REJECTS
from caudal.formats import mapped
from caudal.gateway import accepting
from caudal.gateway.refusals import Refusal
from caudal.gateway.service import Call, Service
from caudal.tasks.results import StoredResult

_WRITTEN: dict[str, Callable[[Result], Iterator[bytes]]] = {
    accepting.JSON: representing.json_pieces,
    accepting.CSV: representing.csv_pieces,
    accepting.PARQUET: representing.parquet_pieces,
}


async def result(service: Service, call: Call) -> Response:
    """GET /jobs/{job}/results/{query}"""
    return await _answer(service, call, call.name("query"))


async def rejects(service: Service, call: Call) -> Response:
    """GET /jobs/{job}/rejects"""
    return await _answer(service, call, REJECTS)


async def _answer(service: Service, call: Call, query: str) -> Response:
    form = accepting.choose(call.request.headers.get("accept"))
    if form is None:
        offered = ", ".join(accepting.OFFERED)
        raise Refusal(406, "not_acceptable", f"a result can be had as {offered}")
    found = await service.threads.run(service.gateway.open_result, *call.job, query)
    headers = {"vary": "accept"}
    if form in _WRITTEN:
        rows = await service.threads.run(_rows, found)
        pieces = await service.threads.run(_begun, _WRITTEN[form](rows))
    else:
        first = 0 if form == accepting.RESULT else found.body + found.index.rows.offset
        pieces = found.pieces(first, found.end)
        headers["content-length"] = str(found.end - first)
    return StreamingResponse(service.threads.each(pieces), media_type=form, headers=headers)


def _begun(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """With the first piece made: what cannot be written is refused before the answer begins."""
    return itertools.chain([next(pieces, b"")], pieces)


def _rows(found: StoredResult) -> Result:
    data = mapped.read_stream(found.read, found.body, found.index.rows, found.index.query)
    table: pa.Table = mapped.read_rows(data)
    return Result(found.index.query, found.index.title, table)
