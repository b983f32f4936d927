"""The HTTP application: each operation behind its guard, one middleware (door.py) before all."""

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from caudal.gateway import openapi
from caudal.gateway.bodies import JSON
from caudal.gateway.door import Door
from caudal.gateway.guard import Guard
from caudal.gateway.operations import Operation
from caudal.gateway.refusals import Refusal
from caudal.gateway.routes import OPERATIONS
from caudal.gateway.send_refusal import response_of
from caudal.gateway.service import Service

_CODES = {
    404: ("no_path", "this path does not exist: see /openapi.json"),
    405: ("no_method", "this path does not allow that method: see Allow"),
}


def make_application(service: Service) -> Starlette:
    """Create the ASGI application that the server runs."""
    paths: dict[str, dict[str, Operation]] = {}
    for one in OPERATIONS:
        paths.setdefault(one.path, {})[one.method] = one
    routes = [
        Route(path, endpoint=Guard(service, methods), methods=list(methods))
        for path, methods in paths.items()
    ]
    description = msgspec.json.encode(openapi.describe(OPERATIONS))

    async def describe(request: Request) -> Response:
        del request
        return Response(description, media_type=JSON)

    routes.append(Route(openapi.PATH, describe))
    for route in routes:
        if route.methods:
            route.methods.discard("HEAD")  # a stream without a body is useless
    app = Starlette(
        routes=routes,
        exception_handlers={HTTPException: _wrong_path},
        middleware=[Middleware(Door, service=service)],
    )
    app.router.redirect_slashes = False
    return app


async def _wrong_path(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code, message = _CODES.get(error.status_code, ("bad_request", ""))
    refusal = Refusal(error.status_code, code, message or str(error.detail), headers=error.headers)
    return response_of(refusal, request.scope)
