"""Limits of one gateway. Everything that an unknown client could make large is bounded here."""

from dataclasses import dataclass


@dataclass(frozen=True)
class GatewayLimits:
    """Limits of sizes, times and counts."""

    request_bytes: int = 4 << 20  # JSON of a job: the texts of its application
    batch_bytes: int = 64 << 20  # a batch as sent
    records_bytes: int = 256 << 20  # the same batch unpacked, as a worker must hold it
    bodies_bytes: int = 320 << 20  # all bodies in memory together; one owner gets a quarter: four
    # batches in transit at once
    bodies_seconds: float = 5.0  # wait of a body for room; then it is refused
    head_bytes: int = 32 << 10  # request line and headers
    head_seconds: float = 15.0  # from a request's first byte, or the connection, to its body
    handshake_seconds: float = 10.0  # TLS handshake
    idle_seconds: float = 15.0  # between two pieces of a body
    body_seconds: float = 120.0  # for a whole body
    slow_seconds: float = 10.0  # after this time a body must have reached `least_rate`
    least_rate: int = 64 << 10  # bytes a second, mean since the start of the body
    send_seconds: float = 60.0  # an answer is aborted if its reader takes no data for this long
    linger_seconds: float = 5.0  # a refused body is read and discarded for this long, so that its
    # sender reads the answer; then the connection is closed
    connections: int = 1024
    requests: int = 64  # in progress at once; more are refused
    streams: int = 256  # event streams and previews open at once
    watchers: int = 16  # requests without a token in progress at once
    threads: int = 16  # for calls to the store; as many again for calls that also use the broker
    plans: int = 2  # in progress at once, each in its own child process
    plans_waiting: int = 32  # requests waiting for a plan, of all owners together
    plans_each: int = 8  # the same, of one owner; one owner never holds all planners
    plan_seconds: float = 30.0  # longest wait for a planner
    previews: int = 2  # stepped at once; DuckDB computes one at a time
    jobs: int = 64  # running, per owner, unless cluster.toml sets another number
    kept_jobs: int = 10_000  # running or kept, per owner, unless cluster.toml sets another number
    stored_bytes: int = 100 * 10**9  # per owner, unless cluster.toml sets another number
    rate_per_second: float = 500.0  # requests per owner, or per address without a token
    rate_burst: float = 1000.0  # unused requests that an owner can save up
