"""What a medic notices and only a person can mend: it is logged, and shown by `caudal status`."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from caudal.cluster.compare_settings import differing_keys
from caudal.cluster.roster import Member, digest_of
from caudal.process.heart import Heartbeat
from caudal.process.logs import fields

_log = logging.getLogger(__name__)


@dataclass
class Complaints:
    """Everything noticed since the medic started."""

    unverified: int = 0  # messages that another secret signed
    unverified_at: float | None = None  # when the last one came
    unreadable: int = 0  # signed heartbeats in an unknown form
    unreadable_at: float | None = None
    differing: set[str] = field(default_factory=set)  # hosts with other members in cluster.toml
    settings: dict[str, list[str]] = field(default_factory=dict)  # hosts with other values of keys
    _unattended: set[str] = field(default_factory=set)  # processes that nobody can restart

    def not_verified(self, sender: str, now: float) -> None:
        """Count a message of a stranger, or of a host with another secret; log few of them."""
        self.unverified += 1
        self.unverified_at = now
        what = "messages do not verify: compare the secret of that host with this one's"
        _log_few(what, sender, self.unverified)

    def not_readable(self, sender: str, now: float) -> None:
        """Count a heartbeat of a version that writes another form; log few of them."""
        self.unreadable += 1
        self.unreadable_at = now
        what = "heartbeats cannot be read: that process has another version of Caudal"
        _log_few(what, sender, self.unreadable)

    def compare(
        self, here: str, members: tuple[Member, ...], settings: Mapping[str, str], beat: Heartbeat
    ) -> None:
        """Note whether the sender's host has the same members and keys in its cluster.toml.

        Medics of one host share the file. They only read a changed one at different moments.
        """
        host = next((one.host for one in members if one.name == beat.pulse.name), None)
        if host in (None, here) or not beat.roster:
            return
        if beat.roster == digest_of(members):
            self.differing.discard(host)
        elif host not in self.differing:
            self.differing.add(host)
            _log.warning("cluster.toml differs between hosts", extra=fields(host=host))
        keys = [] if beat.settings is None else differing_keys(settings, beat.settings)
        if keys and keys != self.settings.get(host):
            extra = fields(host=host, reason=f"another {', '.join(keys)}")
            _log.warning("settings differ between hosts", extra=extra)
        if keys:
            self.settings[host] = keys
        else:
            self.settings.pop(host, None)

    def unattended(self, member: Member) -> None:
        """Say once that nobody can restart this process."""
        if member.name not in self._unattended:
            self._unattended.add(member.name)
            _log.error(
                "cannot restart: no medic runs on its host; run `caudal up` there",
                extra=fields(process=member.name, host=member.host),
            )

    def attended(self, member: Member) -> None:
        """A medic of its host runs again."""
        self._unattended.discard(member.name)


def _log_few(what: str, sender: str, count: int) -> None:
    if count.bit_count() == 1:  # the 1st, 2nd, 4th, 8th and so on
        _log.warning(what, extra=fields(address=sender, count=count))
