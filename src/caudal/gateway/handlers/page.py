"""The page: files of the package, served as they are. Its own requests use the API like any other.

Rules
1. Only the files that were found at the start are served; a name from outside is only looked up.
2. No file of another host, no inline script, no cookie: the policy forbids them to the browser too.
   The page may ask the other gateways of its cluster, which it is told when it is served
   (peers.py), and nobody else. Only the worker that computes digests of files, which sees neither
   the page nor the token, may use WebAssembly.
3. A browser asks each time whether its copy is the newest; a tag answers without the file.
"""

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response

from caudal.formats.digest import digest
from caudal.gateway.refusals import Refusal
from caudal.gateway.service import RequestCall, Service

INDEX, DIGEST = "index.html", "digest.js"
HTML, SCRIPT, STYLE, ICON = "text/html", "text/javascript", "text/css", "image/svg+xml"
_TYPES = {"html": HTML, "js": SCRIPT, "css": STYLE, "svg": ICON}
_NONE: Mapping[bytes, bytes] = {}
_POLICY = "default-src 'self'; frame-ancestors 'none'; form-action 'none'"
_WORKER = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'"
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
    "vary": "accept-encoding",
}


def _headers(name: str, others: Sequence[str]) -> dict[str, str]:
    if name == DIGEST:
        return {"content-security-policy": _WORKER, **_HEADERS}
    asked = " ".join(["'self'", *others])
    return {"content-security-policy": f"{_POLICY}; connect-src {asked}", **_HEADERS}


@dataclass(frozen=True)
class PageFile:
    """A file of the page, ready to be sent."""

    media: str
    data: bytes
    packed: bytes
    tag: str


@cache
def page_files() -> dict[str, PageFile]:
    """Return all files of the page by name."""
    found = {}
    for one in resources.files("caudal.gateway").joinpath("page").iterdir():
        media = _TYPES.get(one.name.rpartition(".")[2])
        if media is not None:
            data = one.read_bytes()
            packed = gzip.compress(data, mtime=0)
            found[one.name] = PageFile(media, data, packed, f'"{digest(data)}"')
    return found


async def index(service: Service, call: RequestCall) -> Response:
    """GET /"""
    if not service.peers.is_known:
        await service.threads.run(service.peers.look)
    others = service.peers.addresses(call.request.url.scheme)
    told = f'id="app" data-gateways="{" ".join(others)}"'
    return file_answer(call.request, INDEX, {b'id="app"': told.encode()}, others)


async def file(service: Service, call: RequestCall) -> Response:
    """GET /page/{file}"""
    del service
    return file_answer(call.request, call.name("file"))


def file_answer(
    request: Request,
    name: str,
    changed: Mapping[bytes, bytes] = _NONE,
    others: Sequence[str] = (),
) -> Response:
    """Return a file of the page; `changed` replaces some of its bytes.

    `others` are the origins that the page may ask beside its own.
    """
    found = page_files().get(name)
    if found is None:
        raise Refusal(404, "no_path", "the page has no such file")
    if changed:
        data = found.data
        for old, new in changed.items():
            data = data.replace(old, new)
        return Response(data, media_type=found.media, headers=_headers(name, others))
    headers = {**_headers(name, others), "etag": found.tag}
    asked = request.headers
    if asked.get("if-none-match") == found.tag:
        return Response(status_code=304, headers=headers)
    if "gzip" in asked.get("accept-encoding", ""):
        headers["content-encoding"] = "gzip"
        return Response(found.packed, media_type=found.media, headers=headers)
    return Response(found.data, media_type=found.media, headers=headers)
