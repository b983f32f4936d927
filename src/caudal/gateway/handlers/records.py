"""Records of a file that arrive as text: from a browser, which cannot cut batches.

A part becomes one batch, with the checks and quotas of any batch (tables.py). The gateway keeps
nothing of the file: the sender says where the part begins, and is told where the next one does.
"""

import msgspec
from starlette.responses import Response

from caudal.errors import DataError
from caudal.files.text_parts import CutPart, PartPlace, TextPart, cut_part
from caudal.formats import batch as batch_format
from caudal.formats import frame
from caudal.formats.quotas import Quota
from caudal.gateway.bodies import announced_size, read_body, require_type
from caudal.gateway.census import stored_size
from caudal.gateway.handlers.tables import space_of
from caudal.gateway.refusals import Refusal
from caudal.gateway.replies import json_answer
from caudal.gateway.service import RequestCall, Service

CSV = "text/csv"
MOST_PART_BYTES = 32 << 20
_COPIES = 3  # of a part in memory: as it came, as an array, as a batch
_MOST_DIGITS = 15
_MOST_NAME = 200  # characters


class RecordsBody(msgspec.Struct, frozen=True):
    """The batch that a part became, and where the next part begins."""

    run: str
    header: int  # bytes of the header, which every part begins with
    offset: int  # in the file, of the next part's first record
    line: int  # its physical line
    bytes: int  # of the batch's records
    digest: str


async def put_records(service: Service, call: RequestCall) -> Response:
    """PUT /jobs/{job}/tables/{table}/records/{number}"""
    number, table = call.number("number"), call.name("table")
    require_type(call.request, CSV)
    size = announced_size(call.request, MOST_PART_BYTES)
    asked = call.request.query_params
    place = _place(call)
    source = _number(call, "source") if "source" in asked else msgspec.UNSET
    file, last = asked.get("file", table)[:_MOST_NAME], asked.get("last") == "true"
    admission = await service.takers.run(service.gateway.admit, *call.job, table, number)
    space = await space_of(service, call, size)
    with service.census.holding(call.owner, space) as hold:
        async with service.bodies.holding(call.owner, _COPIES * size):
            data = await read_body(call.request, MOST_PART_BYTES, service.limits)
            part = TextPart(table, number, file, data, last, place, source)
            cut = await service.takers.run(_cut, part)
            receipt = await service.takers.run(service.gateway.put_admitted, admission, cut.batch)
        if receipt.new:
            hold.lasts({Quota.STORED: stored_size(len(cut.batch))})
    service.figures.body_bytes.inc(len(data))
    return json_answer(_told(receipt.run, cut), 201 if receipt.new else 200)


def _cut(part: TextPart) -> CutPart:
    try:
        return cut_part(part)
    except DataError as error:
        raise Refusal(400, "bad_request", str(error)) from None


def _told(run: str, cut: CutPart) -> RecordsBody:
    index = batch_format.describe(frame.of_bytes(cut.batch), "the batch")
    place = cut.next
    return RecordsBody(run, cut.header, place.offset, place.line, index.bytes, index.digest)


def _place(call: RequestCall) -> PartPlace | None:
    """Return where the part begins; None for the first one, which begins the file."""
    asked = call.request.query_params
    if "offset" not in asked and "line" not in asked:
        return None
    return PartPlace(_number(call, "offset"), _number(call, "line"))


def _number(call: RequestCall, name: str) -> int:
    text = call.request.query_params.get(name, "")
    if not text.isascii() or not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise Refusal(400, "bad_request", f"{name} must be a whole number")
    return int(text)
