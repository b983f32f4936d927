"""Successful answers."""

from typing import Any

import msgspec
from starlette.responses import Response

from caudal.formats.replies import Receipt
from caudal.gateway.bodies import JSON


class ReceiptBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """Confirmation: the run, the tables to send, in order, and whether a batch ended its table."""

    run: str
    tables: tuple[str, ...]
    ended: bool = False


class AskBody(msgspec.Struct, frozen=True):
    """Confirmation of a question: its job and run, the version asked, and the tables it reads."""

    job: str
    run: str
    version: int
    tables: tuple[str, ...]


def json_answer(content: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status, media_type=JSON)


def receipt_answer(receipt: Receipt) -> Response:
    """Return 201 the first time, 200 for a repeated request."""
    body = ReceiptBody(receipt.run, receipt.tables, receipt.ended)
    return json_answer(body, 201 if receipt.new else 200)
