"""SELECTs over the results of a job."""

import msgspec
from starlette.responses import Response

from caudal.errors import QueryError
from caudal.formats.replies import ResultColumn
from caudal.gateway import accept_header
from caudal.gateway.bodies import json_body
from caudal.gateway.refusals import Refusal
from caudal.gateway.replies import json_answer
from caudal.gateway.result_sql import HELD_BYTES
from caudal.gateway.service import RequestCall, Service
from caudal.results.representations import parquet_of

_FORMS = (accept_header.JSON, accept_header.CSV, accept_header.PARQUET)
_MOST_ROW = 16 << 20


class ResultQuestion(msgspec.Struct, frozen=True):
    """A SELECT over the results of a job, which it calls by the names of their queries."""

    sql: str
    parameters: dict[str, str | int | float | bool | None] = {}


class ResultRows(msgspec.Struct, frozen=True):
    """The answer: its columns with Arrow's types, its rows as in JSON results."""

    columns: tuple[ResultColumn, ...]
    rows: msgspec.Raw
    cut: bool  # whether there were more rows
    seconds: float
    bytes: int


async def ask(service: Service, call: RequestCall) -> Response:
    """POST /jobs/{job}/sql"""
    form = accept_header.choose(call.request.headers.get("accept"), _FORMS)
    if form is None:
        raise Refusal(406, "not_acceptable", f"an answer is available as {', '.join(_FORMS)}")
    async with (
        json_body(service, call, ResultQuestion) as asked,
        service.bodies.holding(call.caller.owner, HELD_BYTES),
    ):
        return await service.previewers.run(_answered, service, call, asked, form)


def _answered(service: Service, call: RequestCall, asked: ResultQuestion, form: str) -> Response:
    from caudal.results.text_formats import csv_of, json_of  # loads slowly

    try:
        found = service.result_sql.answer(*call.job, asked.sql, asked.parameters)
        if form == accept_header.PARQUET:
            return Response(b"".join(parquet_of([found.rows])), media_type=form)
        written = (csv_of if form == accept_header.CSV else json_of)([found.rows], _MOST_ROW)
        text = b"".join(written)
    except QueryError as error:
        raise Refusal(422, "query_failed", str(error)) from None
    if form == accept_header.CSV:
        return Response(text, media_type=form)
    columns = tuple(ResultColumn(one.name, str(one.type)) for one in found.rows.schema)
    seconds = round(found.seconds, 4)
    return json_answer(
        ResultRows(columns, msgspec.Raw(text), found.cut, seconds, found.rows.nbytes)
    )
