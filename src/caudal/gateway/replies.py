"""Successful answers."""

from typing import Any

import msgspec
from starlette.responses import Response

from caudal.formats.replies import Receipt
from caudal.gateway.bodies import JSON


class ReceiptBody(msgspec.Struct, frozen=True):
    """Confirmation: the run, and the tables to send, in order."""

    run: str
    tables: tuple[str, ...]


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
    return json_answer(ReceiptBody(receipt.run, receipt.tables), 201 if receipt.new else 200)
