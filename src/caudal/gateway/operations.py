"""Operations of the API: handler and description of each in one place.

The routes and the OpenAPI description are made from the same list (routes.py), so they always
contain the same operations.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from starlette.responses import Response

from caudal.formats.tokens import Right
from caudal.gateway.service import RequestCall, Service

Handler = Callable[[Service, RequestCall], Awaitable[Response]]


class Room(Enum):
    """The kind of place that an operation holds while it is in progress."""

    PROBE = "none, and no rate: it is answered always, and costs next to nothing"
    OPEN = "a place for requests without a token: monitoring"
    REQUEST = "a place for requests"
    STREAM = "a place for streams"

    @property
    def needs_token(self) -> bool:
        return self not in (Room.PROBE, Room.OPEN)


@dataclass(frozen=True)
class MediaContent:
    """A body: its media type, and the struct of its JSON; None if it is not JSON."""

    media: str
    kind: type[Any] | None = None
    schema: Mapping[str, Any] = field(default_factory=dict)  # used if there is no struct


@dataclass(frozen=True)
class Parameter:
    """A parameter in the path, the query or a header."""

    name: str
    place: str
    schema: Mapping[str, Any]
    about: str
    required: bool = True


@dataclass(frozen=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    handler: Handler
    about: str
    answers: Mapping[int, tuple[MediaContent, ...]]  # successful ones, by status
    refusals: tuple[int, ...] = ()  # beside those that every operation of its room has
    body: MediaContent | None = None
    parameters: tuple[Parameter, ...] = ()  # beside those of the path
    room: Room = Room.REQUEST
    right: Right = Right.READ  # that the token must have; see `allows`
    action: str | None = None  # name in the audit log; None writes no line on success

    def allows(self, rights: frozenset[Right]) -> bool:
        """Return whether these rights suffice. An admin may also read and end what others own."""
        is_admins = Right.ADMIN in rights and self.method in ("GET", "DELETE")
        return self.right in rights or is_admins
