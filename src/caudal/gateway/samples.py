"""Process samples: every few seconds one gateway writes how all processes are, for the page.

Rules
1. All gateways try to create the same key for the same few seconds; the store lets the first one
   win. So there is one sample at a time without any agreement.
2. A sample is written if something changed since the last one, or after a minute. So an idle
   cluster writes little.
3. Samples are kept for an hour. They may be lost: nothing is decided by them.
"""

import contextlib
from dataclasses import dataclass, field

from caudal.errors import AlreadyExistsError
from caudal.formats.medic_status import StatusReply
from caudal.formats.task_facts import ProcessFact, ProcessSample, encode_sample, sample_key
from caudal.gateway.cluster_view import ClusterView
from caudal.jobs.interfaces import Clock
from caudal.jobs.shown_facts import KEPT_SECONDS, forget_samples
from caudal.store.port import Store

_QUIET_SECONDS = 60.0
_FORGET_SECONDS = 300.0


@dataclass
class Sampling:
    """The writer of samples of one gateway."""

    store: Store
    clock: Clock
    cluster: ClusterView
    _written: float = -_QUIET_SECONDS
    _forgot: float = 0.0
    _seen: object = field(default=None)

    def round(self) -> None:
        """Look at all processes once."""
        told = self.cluster.look()
        if told is None:
            return
        at, elapsed = self.clock.now(), self.clock.elapsed()
        now = _what_matters(told)
        if now == self._seen and elapsed - self._written < _QUIET_SECONDS:
            return
        with contextlib.suppress(AlreadyExistsError):
            data = encode_sample(sample_of(told, at))
            self.store.create(sample_key(at), data, lasting=False)
        self._seen, self._written = now, elapsed
        if elapsed - self._forgot >= _FORGET_SECONDS:
            self._forgot = elapsed
            dated = self.store.time()  # this clock may be ahead
            forget_samples(self.store, (at if dated is None else min(at, dated)) - KEPT_SECONDS)


def sample_of(told: StatusReply, at: float) -> ProcessSample:
    """Return the sample of one view."""
    facts = tuple(
        ProcessFact(one.name, one.state, one.incarnation, one.memory, one.cpu, one.detail)
        for one in told.processes
    )
    return ProcessSample(round(at, 3), told.leader, told.term, facts)


def _what_matters(told: StatusReply) -> object:
    """Return what changes while anything happens; gateways and medics always compute a little."""
    return (
        told.leader,
        told.term,
        [
            (one.name, one.state, one.incarnation, one.progress if one.kind == "worker" else 0)
            for one in told.processes
        ],
    )
