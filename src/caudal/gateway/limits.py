"""What one gateway takes at once. Everything that a stranger can make large is bounded here."""

from dataclasses import dataclass


@dataclass(frozen=True)
class GatewayLimits:
    """Bounds of sizes, times and counts."""

    request_bytes: int = 4 << 20  # a job's JSON: an application's texts
    batch_bytes: int = 64 << 20  # a batch as it is sent
    records_bytes: int = 256 << 20  # the same batch unpacked, as a worker must hold it
    bodies_bytes: int = 320 << 20  # of all bodies in memory together; a quarter is one client's
    # four batches on their way at once
    bodies_seconds: float = 5.0  # a body waits for room for so long, then it is refused
    head_bytes: int = 32 << 10  # request line and headers
    head_seconds: float = 15.0  # from the first byte of a request, or the connection, to its body
    handshake_seconds: float = 10.0  # of TLS
    idle_seconds: float = 15.0  # between two pieces of a body
    body_seconds: float = 120.0  # for a whole body
    slow_seconds: float = 10.0  # from here on a body must have come at the least rate
    least_rate: int = 64 << 10  # bytes a second, in the mean since it began
    send_seconds: float = 60.0  # a reader that takes nothing for so long is left
    linger_seconds: float = 5.0  # a refused body is thrown away for so long, so that its sender
    # reads the answer; then the connection is closed
    connections: int = 1024
    requests: int = 64  # under way at once; more are refused
    streams: int = 256  # events and previews open at once
    watchers: int = 16  # requests that need no token, under way at once
    threads: int = 16  # that ask the store, and as many that also wait for the broker
    plans: int = 2  # made at once, each in a child of its own
    plans_waiting: int = 32  # for a turn, of all owners together
    plans_each: int = 8  # the same, of one owner; an owner is given all turns but one
    plan_seconds: float = 30.0  # how long one waits for a turn
    previews: int = 2  # looked at at once; DuckDB computes one at a time
    jobs: int = 64  # running, of one owner, unless cluster.toml says otherwise
    kept_jobs: int = 10_000  # that run or whose results are kept, of one owner, likewise
    stored_bytes: int = 100 * 10**9  # of one owner, likewise
    rate_per_second: float = 500.0  # requests of one owner
    rate_burst: float = 1000.0  # that it may have saved up
