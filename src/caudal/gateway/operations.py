"""What an operation of the API is: its handler and its description, in one place.

The routes and the OpenAPI description are both made from the same list (routes.py), so neither
can know an operation that the other does not.
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
    """What an operation takes while it is under way."""

    OPEN = "one of the places for those who show no token: machines that watch"
    REQUEST = "one of the places for requests"
    STREAM = "one of the places for streams"


@dataclass(frozen=True)
class MediaContent:
    """A body: its media type, and the struct that its JSON is; None if it is no JSON."""

    media: str
    kind: type[Any] | None = None
    schema: Mapping[str, Any] = field(default_factory=dict)  # where there is no struct


@dataclass(frozen=True)
class Parameter:
    """What stands in the path, the query or a header."""

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
    answers: Mapping[int, tuple[MediaContent, ...]]  # those that say yes
    refusals: tuple[int, ...] = ()  # beside those that every operation of its room has
    body: MediaContent | None = None
    parameters: tuple[Parameter, ...] = ()  # beside those of the path
    room: Room = Room.REQUEST
    right: Right = Right.READ  # what its token must allow; see `allows`
    action: str | None = None  # what the audit log calls it, if it is worth a line

    def allows(self, rights: frozenset[Right]) -> bool:
        """Do these rights suffice? An admin may also look at and end what is not its own."""
        is_admins = Right.ADMIN in rights and self.method in ("GET", "DELETE")
        return self.right in rights or is_admins
