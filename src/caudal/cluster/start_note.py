"""The note of what a host's processes were started with, and what may not change while they run.

Rules
1. `up` notes all settings in the host's `run/` folder before it starts anything.
2. While a process of the host runs, its name, store and broker are those of the note, whatever
   cluster.toml says by now: halves of a cluster that use different ones wait for each other for
   ever. Everything else, the counts above all, follows the file.
3. With nothing running the file alone decides. `down` removes the note.
4. A file that cannot be read takes nobody's `down` away: the note says enough to stop what runs.
5. Containers are told their store and broker elsewhere (deploy/compose.yaml), and have no pids on
   record here: for them nothing is held.
"""

from pathlib import Path

import msgspec

from caudal.cluster.settings import FILE, ClusterSettings
from caudal.process.records import is_running, read_record

_NOTE = "started-with"


def write_note(run: Path, settings: ClusterSettings) -> None:
    """Whole or not at all, and for this user only: the broker's URL may hold a password."""
    temporary = run / f".{_NOTE}"
    temporary.touch(mode=0o600)
    temporary.write_bytes(msgspec.json.encode(settings))
    temporary.rename(run / _NOTE)


def read_note(run: Path) -> ClusterSettings | None:
    """What was noted, if anything."""
    try:
        return msgspec.json.decode((run / _NOTE).read_bytes(), type=ClusterSettings)
    except (OSError, msgspec.MsgspecError):
        return None


def remove_note(run: Path) -> None:
    (run / _NOTE).unlink(missing_ok=True)


def anything_runs(run: Path) -> bool:
    """Does any process that is on record here exist?"""
    records = (read_record(run, path.stem) for path in run.glob("*.json"))
    return any(record is not None and is_running(record) for record in records)


def held(settings: ClusterSettings, noted: ClusterSettings) -> ClusterSettings:
    """The settings with what may not change as it was noted."""
    brokers = {name for name, host in noted.hosts.items() if host.broker}
    hosts = {
        name: msgspec.structs.replace(host, broker=name in brokers)
        for name, host in settings.hosts.items()
    }
    return msgspec.structs.replace(
        settings, hosts=hosts, name=noted.name, store=noted.store, broker=noted.broker
    )


def difference(settings: ClusterSettings, noted: ClusterSettings) -> str:
    """Where the file says otherwise, in words; empty if it does not."""
    for what in ("store", "name"):
        says, uses = getattr(settings, what), getattr(noted, what)
        if says != uses:
            return f'{FILE} says {what} = "{says}", but what runs here uses "{uses}"'
    if held(settings, noted) != settings:  # no URL is shown: it may hold a password
        return f"{FILE} says another broker than what runs here uses"
    return ""
