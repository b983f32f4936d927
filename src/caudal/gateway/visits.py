"""What becomes known about one request on its way: who asks, and how it was answered.

It travels in the request's scope, where the connection (protocol.py), the door and the guard meet.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_KEY = "caudal.visit"


@dataclass
class Visit:
    """One request."""

    owner: str | None = None  # None: nobody yet
    is_admitted: bool = False  # its token is known, and it has a place
    code: str | None = None  # of the refusal, if it was one
    action: str | None = None  # what the audit log calls it
    job: str | None = None
    query: str | None = None
    on_admission: Callable[[str], None] = lambda owner: None  # the connection wants to know

    def admit(self, owner: str) -> None:
        """Its token is known, and it has a place."""
        self.is_admitted = True
        self.on_admission(owner)


def visit_of(scope: Any) -> Visit:
    """The visit of a scope, made by whoever asks first."""
    found = scope.setdefault(_KEY, Visit())
    assert isinstance(found, Visit)
    return found


def is_admitted(scope: Any) -> bool:
    """Is this the scope of a request that was admitted?"""
    return scope is not None and _KEY in scope and visit_of(scope).is_admitted
