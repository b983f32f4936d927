"""The note of the settings that a host's processes were started with.

Rules
1. `up` writes all settings to a note in the host's `run/` folder before it starts anything. For
   containers `init` does, and `member`, if it is the first to start after all had ended.
2. While a process of the host runs, its name, store and broker are those of the note, whatever
   cluster.toml says now: two halves of a cluster with different ones would wait for each other for
   ever. So are the hosts, their addresses and ports, and how many medics each has: running
   processes send heartbeats to the medics of their start only, and a medic that hears nobody would
   restart everybody. All other settings, above all counts of gateways and workers, follow the file.
3. If nothing runs, only the file counts. `down` removes the note.
4. `down` works even if the file cannot be read: the note is enough to stop what runs.
5. With the note begins a new test of the store by races: whoever passes it notes that beside.
6. A process runs if its pid on record exists or the lock of its name is held. Only locks tell of
   processes in other containers.
"""

import secrets
from pathlib import Path

import msgspec

from caudal.cluster.settings import FILE, ClusterSettings
from caudal.decoding import decode_json
from caudal.process.heart import STORE_PASSED
from caudal.process.locks import is_held
from caudal.process.records import is_running, read_record

_NOTE = "started-with"
_TOLD_OF_HOST = ("address", "port", "medics")
_FIXED_OF_HOST = (*_TOLD_OF_HOST, "broker")


def write_note(run: Path, settings: ClusterSettings) -> None:
    """Write the note atomically, for this user only: the broker's URL may hold a password."""
    (run / STORE_PASSED).unlink(missing_ok=True)
    temporary = run / f".{_NOTE}.{secrets.token_hex(4)}"
    temporary.touch(mode=0o600)
    temporary.write_bytes(msgspec.json.encode(settings))
    temporary.rename(run / _NOTE)


def read_note(run: Path) -> ClusterSettings | None:
    """Return the noted settings; None if there are none."""
    try:
        return decode_json((run / _NOTE).read_bytes(), ClusterSettings)
    except (OSError, msgspec.MsgspecError):
        return None


def remove_note(run: Path) -> None:
    for name in (_NOTE, STORE_PASSED):
        (run / name).unlink(missing_ok=True)


def anything_runs(run: Path) -> bool:
    """Return whether any process exists here that is on record or holds the lock of its name."""
    records = (read_record(run, path.stem) for path in run.glob("*.json"))
    if any(record is not None and is_running(record) for record in records):
        return True
    return any(is_held(path) for path in run.glob("*.lock"))


def held(settings: ClusterSettings, noted: ClusterSettings) -> ClusterSettings:
    """Return the settings with the noted values of what may not change."""
    hosts = {
        name: msgspec.structs.replace(
            settings.hosts.get(name, one), **{key: getattr(one, key) for key in _FIXED_OF_HOST}
        )
        for name, one in noted.hosts.items()
    }
    return msgspec.structs.replace(
        settings, hosts=hosts, name=noted.name, store=noted.store, broker=noted.broker
    )


def difference(settings: ClusterSettings, noted: ClusterSettings) -> str:
    """Return in words how the file differs from the note; "" if it does not."""
    for what in ("store", "name"):
        says, uses = getattr(settings, what), getattr(noted, what)
        if says != uses:
            return f'{FILE} says {what} = "{says}", but the running processes use "{uses}"'
    if list(settings.hosts) != list(noted.hosts):
        says, uses = ", ".join(settings.hosts), ", ".join(noted.hosts)
        return f"{FILE} has the hosts {says}, but the running processes know {uses}, in this order"
    for name, one in noted.hosts.items():
        for what in _TOLD_OF_HOST:
            says, uses = getattr(settings.hosts[name], what), getattr(one, what)
            if says != uses:
                also = f"{FILE} says {what} = {says} for host {name}"
                return f"{also}, but the running processes use {uses}"
    if held(settings, noted) != settings:  # no URL is shown: it may hold a password
        return f"{FILE} names another broker than the running processes use"
    return ""
