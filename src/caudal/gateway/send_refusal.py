"""Sending of refusals."""

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from caudal.gateway.bodies import JSON
from caudal.gateway.refusals import Refusal
from caudal.gateway.visits import visit_of


def response_of(refusal: Refusal, scope: Scope) -> Response:
    """Return the error answer, and record its code in the visit."""
    visit_of(scope).code = refusal.code
    job = scope.get("path_params", {}).get("job")
    return Response(refusal.body(job), refusal.status, refusal.headers, media_type=JSON)


async def respond(refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    await response_of(refusal, scope)(scope, receive, send)
