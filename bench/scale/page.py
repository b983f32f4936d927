"""docs/scale.md, made of what was measured (measured.json) and of the scenario's parameters."""

from collections import Counter
from dataclasses import fields
from pathlib import Path

import msgspec

from bench.scale.costs import (
    Prices,
    Scenario,
    gateway_bytes,
    job_bill,
    loop_cost,
    messages_per_job,
    month,
    status_seconds,
)
from bench.scale.crowd import Outlook
from bench.scale.units import Units
from bench.tables import Table

MEASURED = Path(__file__).with_name("measured.json")

_HEAD = """# What a large cluster costs

`make scale` measures the units and the crowd, and writes this page; do not edit it by hand.
`make test` computes it again from the measured numbers. Requests are counted as S3 bills them,
on a store in memory; times of a request and prices are assumptions."""

_UNITS = """## Measured units

Requests of one act. "A batch more" is what each batch of the job adds: a merge reads the index
of every map output of its group, a fold reads its slice of each."""

_JOB = """## One job

A job of 1 GiB with five queries, from its creation to the deletion of its results."""

_CLUSTER = """## The cluster

Every gateway runs every loop over all running jobs. After a long round, a loop pauses twice as
long as the round took. A hundred thousand ended jobs would change none of these numbers ([ADR
64](adr/0064-ended-jobs-leave-the-level-that-is-listed.md)), but for the listing that each
gateway makes once an hour: one request per thousand kept jobs."""

_CROWD = """## A crowd, simulated

500 workers and 50 gateways, and a small cluster beside them. Jobs of 4 to 40 batches come at
random, tasks take 1 to 3 seconds, a request of a loop 20 ms. The job service, tasks,
readiness, lanes and reconcilers are the real code (`bench/scale/crowd.py`); time, the broker
and computations are simulated. Waiting is the time of a message in its lane. A job's time runs
from its last batch."""

_BREAKS = """## What breaks first, and what would be changed

1. **Reconcilers.** Each gateway looks at each running job, so their requests grow with
   gateways times running jobs, and listings cost as much as writes. They slow down by
   themselves (a round that takes long is followed by a long pause), so the bill and S3 are
   spared at the price of a later notice of lost messages. Change: a job belongs to the gateway
   that a hash of its id chooses among those that wrote a mark within the last minute; others
   look at it only every few minutes.
2. **The page's list of jobs.** An open page asks for all jobs of its owner every 2 to 15
   seconds, two reads for each job. Change: ask for the first page only; put state and
   application into the mark of an ended job.
3. **Quotas of stored bytes and kept jobs.** Their count lists every object of the store, 100
   TB in files of 128 MiB are 800 requests per count and gateway. Change: a sum per owner and
   hour beside the index. Until then, set these quotas only on smaller stores.
4. **Small map outputs.** A fold reads one slice from every map output. With thousands of
   batches, these reads exceed all other requests. Change: merges that also concatenate small
   slices, so that a fold reads one object per group.
5. **RabbitMQ.** A job has some hundred messages; the scenario makes a few dozen a second, far
   below what three nodes with quorum queues carry. A thousand workers are two thousand
   connections, one each to publish and one to consume. They need file descriptors, and patience
   after a broker's restart: while it is away, a link pauses 0.5 to 1 second between two
   attempts, so two thousand links make at most 2,700 attempts a second, each at all nodes in
   turn (idle workers ask for one of their two links only, about once a second). Once it is back,
   all of these connect within about a second, and each declares seven queues. That was not
   measured. Change: longer pauses the more workers there are.

Many workers make a calm queue: of 500, one is free for almost every task even at 95%, where
20 workers let tasks wait for seconds. What a large cluster runs out of is requests, not
workers. Scale workers on `caudal_broker_waiting`: small clusters before 80% of them are busy,
large ones before 95%."""


class Measured(msgspec.Struct, frozen=True):
    """The content of measured.json."""

    units: Units
    crowd: tuple[Outlook, ...]


def read() -> Measured:
    return msgspec.json.decode(MEASURED.read_bytes(), type=Measured)


def write(measured: Measured) -> None:
    MEASURED.write_bytes(msgspec.json.format(msgspec.json.encode(measured), indent=1) + b"\n")


def page(measured: Measured) -> str:
    """Return the whole page."""
    units, one, prices = measured.units, Scenario(), Prices()
    parts = [
        *(_HEAD, "## Parameters", _parameters(one, prices).markdown()),
        *(_UNITS, _unit_table(units).markdown()),
        *(_JOB, _job_table(units, one, prices).markdown()),
        *(_CLUSTER, _cluster_table(units, one, prices).markdown()),
        *(_CROWD, _crowd_table(measured.crowd).markdown()),
        _BREAKS,
    ]
    return "\n\n".join(parts) + "\n"


def _parameters(one: Scenario, prices: Prices) -> Table:
    rows = [
        [field.name.replace("_", " "), _number(getattr(one, field.name))] for field in fields(one)
    ]
    rows += [
        [f"{what} (list price, {prices.date})", f"{price:g} $"]
        for what, price in (
            ("1,000 requests that write or list", prices.put_thousand),
            ("1,000 reads", prices.get_thousand),
            ("1,000 deletes", prices.delete_thousand),
            ("1 GB for a month", prices.gigabyte_month),
        )
    ]
    return Table("", ["parameter", "value"], rows)


def _unit_table(units: Units) -> Table:
    rows = [[act, *_cells(bill), ""] for act, bill in units.requests.items()]
    for row in rows:
        if more := units.per_batch.get(row[0]):
            row[-1] = ", ".join(f"{count:g} {kind}" for kind, count in more.items() if count)
    return Table("", ["act", "writes", "reads", "listings", "deletes", "a batch more"], rows)


def _job_table(units: Units, one: Scenario, prices: Prices) -> Table:
    bills = job_bill(units, one)
    rows = [[act, *_cells(bill), f"{prices.of(bill):.5f}"] for act, bill in bills.items()]
    total = sum(bills.values(), Counter())
    rows.append(["**all**", *_cells(total), f"{prices.of(total):.5f}"])
    return Table("", ["for", "writes", "reads", "listings", "deletes", "$"], rows)


def _cluster_table(units: Units, one: Scenario, prices: Prices) -> Table:
    job = sum(job_bill(units, one).values(), Counter())
    daily = Counter({kind: count * one.jobs_a_day for kind, count in job.items()})
    reconciler = loop_cost(units, one, "reconciler", one.reconciler_pause)
    janitor = loop_cost(units, one, "janitor", one.janitor_pause)
    messages = messages_per_job(one) * one.jobs_a_day
    rows = [
        ["running jobs, on average", f"{one.running:.1f}"],
        ["requests of jobs a day", f"{sum(daily.values()):,.0f}"],
        ["requests of jobs a month", f"{month(daily, prices):,.0f} $"],
    ]
    for name, loop in (("reconciler", reconciler), ("janitor", janitor)):
        rows += [
            [f"a {name}'s round: requests", f"{loop.requests:.0f}"],
            [
                f"a {name}'s round: seconds, and until the next one",
                f"{loop.seconds:.1f}, {loop.every_seconds:.1f}",
            ],
            [f"{name}s of all gateways a month", f"{month(loop.daily, prices):,.0f} $"],
        ]
    rows += [
        ["the status of a job, seconds", f"{status_seconds(units, one):.2f}"],
        ["task messages a day, and a second", f"{messages:,.0f}, {messages / 86_400:.0f}"],
        ["memory of a gateway", f"{gateway_bytes(units, one) / 1e6:,.0f} MB"],
        ["of it for each running job", f"{units.job_memory_bytes / 1e3:,.0f} kB"],
        ["storage a month", f"{one.terabytes * 1000 * prices.gigabyte_month:,.0f} $"],
    ]
    return Table("", ["what", "value"], rows)


def _crowd_table(crowd: tuple[Outlook, ...]) -> Table:
    head = [
        "workers, gateways", "load", "busy", "jobs", "tasks", "a task waits, mean s",
        "95% s", "a job, mean s", "95% s",
        "messages a job", "requests a job: workers", "gateways", "loops a second",
        "a reconciler's round s", "computed twice",
    ]  # fmt: skip
    rows = [
        [
            f"{one.workers}, {one.gateways}", f"{one.utilisation:.0%}", f"{one.busy:.0%}",
            f"{one.jobs:,}", f"{one.tasks:,}",
            f"{one.waited_mean:.2f}", f"{one.waited_95:.2f}", f"{one.job_mean:.1f}",
            f"{one.job_95:.1f}", f"{one.messages_per_job:.1f}",
            f"{one.worker_requests_per_job:.0f}", f"{one.gateway_requests_per_job:.0f}",
            f"{one.loop_requests_per_second:,.0f}",
            f"{one.round_seconds:.1f}", str(one.computed_twice),
        ]
        for one in crowd
    ]  # fmt: skip
    return Table("", head, rows)


def _cells(bill: dict[str, float] | Counter[str]) -> list[str]:
    return [_number(bill.get(kind, 0.0)) for kind in ("put", "get", "list", "delete")]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value - round(value)) < 1e-9 or value >= 100 else f"{value:,.2f}"
