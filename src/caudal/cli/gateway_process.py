"""The gateway process, with its imports: the web server, DuckDB and the broker library."""

import os
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from caudal.application.loadable import loadable_applications
from caudal.broker.open_broker import open_broker
from caudal.errors import UsageError
from caudal.formats.quotas import NONE_GIVEN, Quotas, read_quotas
from caudal.gateway import process
from caudal.gateway.audit import Audit
from caudal.gateway.cluster_view import ClusterView, NoMedics
from caudal.gateway.compute import SharedCompute
from caudal.gateway.figures import GatewayMetrics
from caudal.gateway.late_probe import LateProbe
from caudal.gateway.limits import GatewayLimits
from caudal.gateway.planners import Planners
from caudal.gateway.tokens import Tokens, check_host
from caudal.gateway.upkeep import Pauses
from caudal.jobs.ports import Bounds, Ports
from caudal.jobs.runs import JobRuns
from caudal.medic.visitor import MedicVisitor
from caudal.process.certificates import Certificate
from caudal.process.clock import SystemClock, new_id
from caudal.process.frame import ProcessExit
from caudal.process.heart import Heart
from caudal.process.logs import Style, set_up_logs
from caudal.process.signals import Stop
from caudal.process.ticks import OnTick, Tick, ignore
from caudal.process.watched_files import Followed
from caudal.sizes import parse_seconds
from caudal.store import open_store, require_conditional_create
from caudal.store.open_store import folder_of

_LEAST_SILENCE_SECONDS = 5 * Pauses.reconciler  # the reconciler would miss a shorter one

_LEAST_UNUSED_SECONDS = 3_600.0  # a question must be able to use what it computes


def serve(
    *,
    store: str,
    broker: str,
    host: str,
    port: int,
    access: "Access",
    name: str | None,
    job_timeout: float,
    keep_results: str | None,
    keep_unused: str,
    rate: float,
    sentiment: list[str],
    log_format: Style,
    fsync: bool,
    beating: Heart | None,
) -> None:
    """Serve until a stop is requested; the options are those of `caudal gateway`."""
    known = name or f"gateway-{port}"
    limits = GatewayLimits(rate_per_second=rate, rate_burst=2 * rate)
    settings = replace(access.settings(host, port, limits, known), cluster=_view(known, beating))
    figures, stop = GatewayMetrics(), Stop()
    set_up_logs(log_format, "gateway", known)
    with ExitStack() as held:
        on_tick: OnTick = ignore
        if beating is not None:
            beating.progress = lambda: figures.answered
            on_tick = _beat_with_refusals(beating, figures)
        queue = open_broker(broker, known)
        held.callback(queue.close)
        opened, clock = open_store(store, fsync=fsync), SystemClock(stop)
        passed = beating.store_passed if beating else None
        probe = LateProbe(partial(require_conditional_create, opened, passed), clock, stop)
        if folder_of(store) is None:
            probe.begin(beating)
        models = ("lexicon", *sentiment)
        planners = Planners(limits.plans, models=models, wait_seconds=limits.plan_seconds)
        held.callback(planners.close)
        ports = Ports(
            store=opened,
            broker=queue,
            compute=SharedCompute(planners),
            clock=clock,
            new_id=new_id,
            job_runs=JobRuns(opened),
            bounds=Bounds(
                silence_seconds=(min(_LEAST_SILENCE_SECONDS, job_timeout), job_timeout),
                keep_seconds=parse_seconds(keep_results) if keep_results else None,
                unused_seconds=max(_LEAST_UNUSED_SECONDS, parse_seconds(keep_unused)),
                batch_bytes=limits.records_bytes,
                sentiments=models,
                jobs_ahead=_jobs_ahead(settings.tokens),
            ),
        )
        ending = process.serve(settings, ports, stop, figures, planners.select, on_tick)
        probe.require()
        if ending is ProcessExit.ABANDONED:
            sys.stderr.flush()
            os._exit(0)  # a thread waits for an unresponsive store; nothing depends on it


def _jobs_ahead(tokens: Tokens) -> int:
    """Return how many jobs of one owner run at normal speed (ADR 23). Without tokens all clients
    are one owner, and there is nobody else to be protected from it."""
    return Bounds.jobs_ahead if tokens.required else sys.maxsize


def _view(name: str, beating: Heart | None) -> ClusterView:
    """Return how the gateway sees its cluster: through the medics that hear its heart."""
    if beating is None:
        return NoMedics(name)
    return MedicVisitor(name, beating.file.medics, beating.seal)


def _beat_with_refusals(beating: Heart, figures: GatewayMetrics) -> OnTick:
    """Return a heartbeat that reports to `caudal status` how often quotas were exceeded."""

    def beat(tick: Tick) -> None:
        refused = figures.over_quota
        beating.beat(tick, f"{refused} over quota" if refused else "")

    return beat


@dataclass(frozen=True)
class Access:
    """The files that control access: tokens, quotas, TLS certificate and audit log."""

    token_file: Path | None = None
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    quotas: Path | None = None
    audit: Path | None = None

    def settings(
        self, host: str, port: int, limits: GatewayLimits, name: str
    ) -> process.GatewaySettings:
        """Return the gateway settings; read all files now, and reload them when they change."""
        tokens = Tokens.of_file(self.token_file) if self.token_file else Tokens()
        check_host(host, tokens)
        certificate, quotas = self._certificate(), self._quotas()

        def stale_files() -> int:
            followed = [one for one in (certificate, quotas) if one is not None]
            return tokens.is_stale() + sum(one.is_stale for one in followed)

        return process.GatewaySettings(
            new_id(),
            host,
            port,
            tokens,
            limits,
            certificate=certificate,
            quotas=quotas.now if quotas else lambda: NONE_GIVEN,
            audit=Audit(self.audit, name),
            stale_files=stale_files,
            applications=loadable_applications,
        )

    def _certificate(self) -> Certificate | None:
        if self.tls_certificate is None and self.tls_key is None:
            return None
        if self.tls_certificate is None or self.tls_key is None:
            raise UsageError("TLS needs both --tls-certificate and --tls-key")
        return Certificate(self.tls_certificate, self.tls_key)

    def _quotas(self) -> Followed[Quotas] | None:
        path = self.quotas
        return Followed([path], lambda: read_quotas(path)) if path else None
