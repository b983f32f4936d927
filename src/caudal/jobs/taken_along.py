"""Small jobs go on in the worker that has their data: no message for each of their tasks (ADR 67).

Rules
1. A worker that makes tasks ready may take them along: it carries them out itself, each with all
   its steps, while it holds the delivery that it took. It acknowledges that delivery after the last
   of them. So whatever a crash leaves undone is delivered again with it.
2. Tasks are taken along only if all tables that their job has sent are small, if they are few, and
   if the delivery has not been held for long. Otherwise they are published, for all workers.
3. A delivery that comes again may have been held by a worker that died between two of its tasks.
   Ready tasks that have an output by then are taken along, whatever rule 2 says: nobody else has a
   message that leads to what follows from them.
4. Once the time is over, the tasks that wait are published, before the acknowledgement. Those of a
   delivery that came again are not, for the reason of rule 3.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from caudal.broker.port import Delivery
from caudal.formats.keys import Message, Task
from caudal.jobs.facts import StoreFacts
from caudal.jobs.ports import Ports
from caudal.jobs.runs import JobRun
from caudal.jobs.shared_maps import is_made

MOST_ALONG = 64  # tasks that wait at once


@dataclass
class HeldDelivery:
    """A delivery that a worker holds, and the tasks that it takes along."""

    ports: Ports
    delivery: Delivery
    waiting: deque[Delivery] = field(default_factory=deque)
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.ports.clock.elapsed()

    def tasks(self) -> Iterator[Delivery]:
        """Yield the delivery, then the tasks taken along, until it is late (rule 4)."""
        yield self.delivery
        while self.waiting and (self._is_again or not self._is_late()):
            yield self.waiting.popleft()

    def publish_waiting(self) -> None:
        """Leave the tasks that wait to all workers."""
        if self.waiting:
            self.ports.broker.publish([one.message for one in self.waiting])
            self.waiting.clear()

    def go_on(self, job_run: JobRun, ready: Sequence[Task], facts: StoreFacts) -> None:
        """Take ready tasks along, or publish them."""
        made: list[Task] = []
        if self._is_again:
            made = [one for one in ready if is_made(self.ports.store, job_run, one)]
            self._take(job_run.message(one) for one in made)
        rest = [job_run.message(one) for one in ready if one not in made]
        if rest and self._takes(len(rest)) and self._is_small(job_run, facts):
            self._take(rest)
        elif rest:
            self.ports.broker.publish(rest)

    @property
    def _is_again(self) -> bool:
        return self.delivery.count > 1

    def _take(self, messages: "Iterator[Message] | Sequence[Message]") -> None:
        self.waiting.extend(replace(self.delivery, message=one) for one in messages)

    def _takes(self, count: int) -> bool:
        most = MOST_ALONG if self.ports.bounds.along_bytes else 0
        return len(self.waiting) + count <= most and not self._is_late()

    def _is_late(self) -> bool:
        return self.ports.clock.elapsed() - self._began >= self.ports.bounds.along_seconds

    def _is_small(self, job_run: JobRun, facts: StoreFacts) -> bool:
        """Return whether all tables whose end is known are small together. A task that is ready
        reads no other table, but for the merge of a full group before the end of its table."""
        ends = [facts.ending(table) for table in job_run.shape.tables]
        known = [end.bytes for end in ends if end is not None]
        return bool(known) and sum(known) <= self.ports.bounds.along_bytes
