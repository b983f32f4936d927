"""Facts about one request that become known while it is handled: its owner and its answer.

The visit is stored in the request's scope. The connection (protocol.py), the door and the guard
share it there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_KEY = "caudal.visit"


@dataclass
class Visit:
    """One request."""

    owner: str | None = None  # None: not known yet
    is_admitted: bool = False  # its token is known, and it has a place
    code: str | None = None  # of the refusal, if there was one
    action: str | None = None  # name in the audit log
    job: str | None = None
    query: str | None = None
    dataset: str | None = None
    on_admission: Callable[[str], None] = lambda owner: None  # informs the connection

    def admit(self, owner: str) -> None:
        """Mark the request as admitted: its token is known, and it has a place."""
        self.is_admitted = True
        self.on_admission(owner)


def visit_of(scope: Any) -> Visit:
    """Return the visit of a scope; create it if there is none."""
    found = scope.setdefault(_KEY, Visit())
    assert isinstance(found, Visit)
    return found


def is_admitted(scope: Any) -> bool:
    """Return whether this scope belongs to an admitted request."""
    return scope is not None and _KEY in scope and visit_of(scope).is_admitted
