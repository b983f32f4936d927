"""Detection of ended processes, without a system call for each process.

Rules
1. Each process on record is held by a descriptor (pidfd), which the kernel marks at its end: one
   system call reports all ends. A descriptor never means another process with a recycled pid.
2. A record is replaced only after its process has ended (launcher.py), so it is read once. If its
   process is gone, or cannot be held, it is read at every look.
3. Whether a process is stopped is checked only for the names in `closely`.
"""

import os
import select
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

from caudal.process.records import ProcessLife, ProcessRecord, life_of, read_record

Seen = tuple[str, ProcessRecord, ProcessLife]


class Attendance:
    """The processes of one folder of records. Not thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._poll = select.poll()
        self._held: dict[str, tuple[ProcessRecord, int]] = {}

    def look(self, names: Sequence[str], closely: Container[str]) -> Iterator[Seen]:
        """Yield the records under these names with the state of their processes."""
        for name in self._held.keys() - set(names):
            self._let_go(name)
        ended = {descriptor for descriptor, _ in self._poll.poll(0)}
        for name in names:
            held = self._held.get(name)
            if held is not None and held[1] not in ended:
                yield name, held[0], life_of(held[0]) if name in closely else ProcessLife.RUNNING
                continue
            self._let_go(name)
            record = read_record(self._folder, name)
            if record is not None:
                yield name, record, self._hold(name, record)

    def close(self) -> None:
        """Release all descriptors; a later look starts anew."""
        for name in list(self._held):
            self._let_go(name)

    def _hold(self, name: str, record: ProcessRecord) -> ProcessLife:
        try:
            descriptor = os.pidfd_open(record.pid)
        except OSError:  # it is gone, or no descriptor is left: tried again at the next look
            return life_of(record)
        life = life_of(record)  # checked after opening: the pid cannot be recycled any more
        if life is ProcessLife.GONE:
            os.close(descriptor)
        else:
            self._poll.register(descriptor, select.POLLIN)
            self._held[name] = record, descriptor
        return life

    def _let_go(self, name: str) -> None:
        if name in self._held:
            _, descriptor = self._held.pop(name)
            self._poll.unregister(descriptor)
            os.close(descriptor)
