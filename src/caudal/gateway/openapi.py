"""The OpenAPI description, made from the operations and the structs of their bodies."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from caudal.gateway.bodies import JSON
from caudal.gateway.operations import MediaContent, Operation
from caudal.gateway.refusals import ErrorBody
from caudal.version import __version__

PATH = "/openapi.json"
_NAME = {"type": "string", "minLength": 1, "maxLength": 100, "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}
_OWNED = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"}
_PARTS: Mapping[str, Mapping[str, Any]] = {
    "job": {"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9_-]+$"},
    "table": _NAME,
    "query": _NAME,
    "file": {"type": "string", "minLength": 1, "maxLength": 100, "pattern": "^[A-Za-z0-9.-]+$"},
    "number": {"type": "integer", "minimum": 0, "maximum": 999_999_999},
    "dataset": _OWNED,
    "reader": _OWNED,
}
_SAID = {
    400: "The request is invalid; the message says why.",
    401: "The token is missing or unknown.",
    403: "The token lacks the right for this, or a page of another site asks.",
    404: "It does not exist, or not yet.",
    406: "There is no representation of this media type.",
    408: "The body did not arrive in time.",
    409: "Different content exists under this name.",
    410: "The job has ended.",
    413: "The body is too large.",
    415: "The body has the wrong media type.",
    421: "A gateway without tokens only answers to loopback names.",
    422: "The application cannot be planned, or the query failed; the message says why.",
    429: "Too much at once, or over the named quota: repeat after Retry-After.",
    431: "The head of the request is too large.",
    503: "The store or the broker does not answer: repeat after Retry-After.",
}
_EVERYWHERE = (400, 421, 429, 431)
_WITH_TOKEN = (401, 403, 503)
_REFERENCE = "#/components/schemas/{name}"


def describe(operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the whole description."""
    listed = list(operations)
    kinds = {content.kind for one in listed for content in _contents(one) if content.kind}
    ordered = sorted(kinds | {ErrorBody}, key=lambda kind: kind.__name__)
    schemas, components = msgspec.json.schema_components(ordered, ref_template=_REFERENCE)
    named = dict(zip(ordered, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in listed:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, named)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Caudal gateway", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _contents(one: Operation) -> list[MediaContent]:
    given = [content for contents in one.answers.values() for content in contents]
    return [*given, one.body] if one.body else given


def _operation(one: Operation, named: Mapping[type[Any], Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": f"{one.handler.__module__.rsplit('.', 1)[-1]}_{one.handler.__name__}",
        "summary": one.about,
        "parameters": [*_path_parameters(one), *_parameters(one)],
        "responses": {**_answers(one, named), **_refusals(one, named)},
        "security": [{"token": []}] if one.room.needs_token else [],
    }
    if one.body is not None:
        described["requestBody"] = {"required": True, "content": _body(one.body, named)}
    return described


def _path_parameters(one: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": dict(_PARTS[name])}
        for name in re.findall(r"\{(\w+)\}", one.path)
    ]


def _parameters(one: Operation) -> list[dict[str, Any]]:
    return [
        {
            "name": given.name,
            "in": given.place,
            "required": given.required,
            "description": given.about,
            "schema": dict(given.schema),
        }
        for given in one.parameters
    ]


def _answers(one: Operation, named: Mapping[type[Any], Any]) -> dict[str, Any]:
    return {
        str(status): {
            "description": "Success." if status != 201 else "Success; it was created.",
            "content": {
                media: schema
                for content in contents
                for media, schema in _body(content, named).items()
            },
        }
        for status, contents in one.answers.items()
    }


def _refusals(one: Operation, named: Mapping[type[Any], Any]) -> dict[str, Any]:
    guarded = _WITH_TOKEN if one.room.needs_token else ()
    statuses = {*one.refusals, *_EVERYWHERE, *guarded}
    return {
        str(status): {
            "description": _SAID[status],
            "content": {JSON: {"schema": named[ErrorBody]}},
        }
        for status in sorted(statuses)
    }


def _body(content: MediaContent, named: Mapping[type[Any], Any]) -> dict[str, Any]:
    schema = named[content.kind] if content.kind else dict(content.schema)
    return {content.media: {"schema": schema}}
