"""The other gateways of the cluster, for a page whose own gateway does not answer.

Rules
1. Only addresses that medics told, from the cluster's own settings, are named to a page or allowed
   to ask from a page. A request from any other origin gets no permission, so the browser keeps its
   answer, and never sends it a token: a request with one is preceded by a question.
2. There are no cookies, so nothing is sent by itself. The token is sent by the page alone.
3. The addresses are those of the last look at the medics: every gateway looks every few seconds.
   They stay while no medic answers.
"""

import re
from collections.abc import Mapping

from caudal.formats.medic_status import FaultKind, StatusReply
from caudal.gateway.cluster_view import ClusterView
from caudal.process.loopback import is_loopback

_HOST = re.compile(r"[A-Za-z0-9.-]+\Z|[0-9A-Fa-f:]+\Z")
_NOWHERE = {"0.0.0.0", "::"}  # where a gateway listens, not where it is
_ALLOWED = {
    "access-control-allow-methods": "GET, PUT, POST, DELETE",
    "access-control-allow-headers": "authorization, content-type, accept, last-event-id",
    "access-control-max-age": "600",
}


class KnownCluster:
    """The medics as a gateway asks them; the last answer is remembered. Any thread may call it."""

    def __init__(self, view: ClusterView) -> None:
        self.name = view.name
        self._view = view
        self._gateways: tuple[str, ...] | None = None  # None: no medic was asked yet

    def look(self) -> StatusReply | None:
        """See ClusterView."""
        told = self._view.look()
        if told is not None:
            self._gateways = tuple(one.address for one in told.processes if one.kind == "gateway")
        elif self._gateways is None:
            self._gateways = ()
        return told

    def strike(self, name: str, incarnation: int, fault: FaultKind) -> str:
        """See ClusterView."""
        return self._view.strike(name, incarnation, fault)

    @property
    def is_known(self) -> bool:
        """Whether the medics were asked."""
        return self._gateways is not None

    def addresses(self, scheme: str) -> list[str]:
        """Return the origins of all gateways, as the medics know them."""
        found = (_origin(scheme, one) for one in self._gateways or ())
        return [one for one in found if one]

    def allows(self, scheme: str, origin: str) -> bool:
        """Return whether a page of this origin may ask: it was served by one of the gateways."""
        return any(origin in _names(one) for one in self.addresses(scheme))

    def permission(self, scheme: str, origin: str | None, *, asked: bool) -> Mapping[str, str]:
        """Return the headers of an answer to a page of this origin; with `asked`, of its question
        before a request."""
        if origin is None or not self.allows(scheme, origin):
            return {}
        granted = {
            "access-control-allow-origin": origin,
            "access-control-expose-headers": "retry-after",
        }
        return granted | _ALLOWED if asked else granted


def _origin(scheme: str, address: str) -> str:
    """Return the origin of an address such as HOST:PORT; "" if it is none to call.

    >>> [_origin("http", one) for one in ("127.0.0.1:8421", "::1:8421", "0.0.0.0:8421")]
    ['http://127.0.0.1:8421', 'http://[::1]:8421', '']
    """
    host, _, port = address.rpartition(":")
    if not _HOST.match(host) or not port.isdecimal() or host in _NOWHERE:
        return ""
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _names(origin: str) -> list[str]:
    """Return an origin under all its names: this machine has several."""
    scheme, _, rest = origin.partition("://")
    host, _, port = rest.rpartition(":")
    if not is_loopback(host.strip("[]")):
        return [origin]
    return [origin, *(f"{scheme}://{name}:{port}" for name in ("localhost", "127.0.0.1", "[::1]"))]
