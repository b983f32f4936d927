"""The HTTP of `caudal ui`: the page's files and one session, on loopback, for one person.

Rules
1. It listens on loopback, and answers to loopback names only. So no page of another host reaches it
   by a name of its own.
2. Every request but those for the page's files must carry the key that the command printed. It is
   new at each start, stays in the browser's tab, and is sent as a header: other users of the
   machine and other pages do not have it.
3. Bodies are bounded: JSON, or a part of a file for a dataset.
"""

import hmac
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from caudal.cli.formats import Format, encode
from caudal.cli.ui.series import SeriesRoom
from caudal.cli.ui.session import AskedSql, UiSession
from caudal.cli.ui.shelf import ShelfRoom
from caudal.decoding import decode_json
from caudal.errors import CaudalError
from caudal.gateway import accept_header
from caudal.gateway.handlers.page import INDEX, file_answer, page_files
from caudal.gateway.refusals import Refusal
from caudal.gateway.send_refusal import response_of
from caudal.process.loopback import names_loopback
from caudal.results.values import json_text

MOST_BODY = 1 << 20
MOST_PART = 16 << 20  # of a dropped file
_FORMS = {
    accept_header.CSV: Format.CSV,
    accept_header.PARQUET: Format.PARQUET,
    accept_header.ARROW: Format.ARROW,
}
_MOST_PAGE = 100_000  # rows as JSON at once
Endpoint = Callable[[Request], Awaitable[Response]]


def ui_application(session: UiSession, key: str) -> Starlette:
    """Return the application of one session."""

    def guarded(endpoint: Endpoint, *, is_open: bool = False) -> Endpoint:
        return _guarded(endpoint, None if is_open else key)

    async def index(request: Request) -> Response:
        return file_answer(request, INDEX, {b'id="app"': b'id="app" data-mode="embedded"'})

    async def page(request: Request) -> Response:
        return file_answer(request, request.path_params["file"])

    async def about(request: Request) -> Response:
        del request
        return _json(await run_in_threadpool(session.about))

    async def sql(request: Request) -> Response:
        return _json(await run_in_threadpool(session.answer, await _asked(request)))

    async def explain(request: Request) -> Response:
        return _json(await run_in_threadpool(session.plan, await _asked(request)))

    async def upload(request: Request) -> Response:
        shelf, name = _shelf(session), request.query_params.get("name", "")
        offset = _number(request, "offset", 0, digits=15)
        part = await _body(request, MOST_PART, "a part")
        return _json({"size": await run_in_threadpool(shelf.take, name, offset, part)})

    async def load(request: Request) -> Response:
        asked = request.query_params
        table, name = asked.get("table", ""), asked.get("name", "")
        return _json(await run_in_threadpool(session.load, table, name))

    async def series(request: Request) -> Response:
        room, parts = _series(session), request.path_params
        if "code" in parts:
            as_of = _number(request, "as_of", 0) or None
            return _json(
                await run_in_threadpool(room.values, parts["dataset"], parts["code"], as_of)
            )
        if "dataset" in parts:
            return _json(await run_in_threadpool(room.contents, parts["dataset"]))
        return _json(await run_in_threadpool(room.listing))

    async def rows(request: Request) -> Response:
        return await run_in_threadpool(_rows, session, request)

    page_files()
    return Starlette(
        routes=[
            Route("/", guarded(index, is_open=True)),
            Route("/page/{file}", guarded(page, is_open=True)),
            Route("/ui", guarded(about)),
            Route("/ui/sql", guarded(sql), methods=["POST"]),
            Route("/ui/explain", guarded(explain), methods=["POST"]),
            Route("/ui/upload", guarded(upload), methods=["PUT"]),
            Route("/ui/load", guarded(load), methods=["POST"]),
            Route("/ui/series", guarded(series)),
            Route("/ui/series/{dataset}", guarded(series)),
            Route("/ui/series/{dataset}/{code}", guarded(series)),
            Route("/ui/answers/{number:int}", guarded(rows)),
        ]
    )


def _guarded(endpoint: Endpoint, key: str | None) -> Endpoint:
    """Return an endpoint that checks requests first, and answers errors as refusals."""

    async def answer(request: Request) -> Response:
        try:
            _check(request, key)
            return await endpoint(request)
        except Refusal as refusal:
            return response_of(refusal, request.scope)
        except OSError as error:
            said = f"this machine cannot store it: {error.strerror or error}"
            return response_of(Refusal(422, "query_failed", said), request.scope)
        except CaudalError as error:
            notes = "\n".join(getattr(error, "__notes__", ()))
            said = f"{error}\n{notes}".strip()
            return response_of(Refusal(422, "query_failed", said), request.scope)

    return answer


def _check(request: Request, key: str | None) -> None:
    if not names_loopback(request.headers.get("host")):
        raise Refusal(421, "wrong_host", "call this server localhost or 127.0.0.1")
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    if key is not None and not hmac.compare_digest(given.encode(), key.encode()):
        raise Refusal(401, "no_token", "open the address that `caudal ui` printed")


async def _asked(request: Request) -> AskedSql:
    body = await _body(request, MOST_BODY, "a SELECT")
    try:
        return decode_json(body, AskedSql)
    except msgspec.MsgspecError as error:
        raise Refusal(400, "bad_request", f"the body is no SELECT: {error}") from None


async def _body(request: Request, most: int, what: str) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise Refusal(413, "too_large", f"{what} may have at most {most} bytes")
    return bytes(body)


def _shelf(session: UiSession) -> ShelfRoom:
    if session.shelf is None:
        raise Refusal(404, "no_path", "start `caudal ui APP --from DATASET` to load files")
    return session.shelf


def _series(session: UiSession) -> SeriesRoom:
    if session.series is None:
        raise Refusal(404, "no_path", "start `caudal ui --series STORE` to see series")
    return session.series


def _rows(session: UiSession, request: Request) -> Response:
    result = session.result(request.path_params["number"])
    form = accept_header.choose(request.headers.get("accept"), (accept_header.JSON, *_FORMS))
    if form in _FORMS:
        return Response(b"".join(encode(result, _FORMS[form])), media_type=form)
    offset, limit = (_number(request, name, usual) for name, usual in _WINDOW)
    some = result[offset : offset + min(limit, _MOST_PAGE)]
    return Response(json_text(some.rows(), None).encode(), media_type=accept_header.JSON)


_WINDOW = (("offset", 0), ("limit", _MOST_PAGE))


def _number(request: Request, name: str, usual: int, digits: int = 9) -> int:
    text = request.query_params.get(name, str(usual))
    if not text.isascii() or not text.isdecimal() or len(text) > digits:
        raise Refusal(400, "bad_request", f"{name} must be a whole number")
    return int(text)


def _json(content: Any) -> Response:
    return Response(msgspec.json.encode(content), media_type=accept_header.JSON)
