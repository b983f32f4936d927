"""The faults: what each one does to the network, to processes, and to a clock."""

from dataclasses import dataclass, field
from random import Random

from tests.partitions.wires import EVERY, Rule, Way

WORKING = ("a", "b", "c")  # hosts with gateways and workers
BROKER, STORE, USERS = "q", "s", "u"
HOSTS = (*WORKING, BROKER, STORE, USERS)
WRONG_CLOCK = "b"  # the host whose clock can be moved
_SLOW_BYTES = 100_000  # per second, to and from a gateway behind a slow line
NAMES = (
    "cut", "one-way", "loss", "delay", "parted", "broker", "store", "kill", "clock", "slow",
    "flapping", "rolling", "down",
)  # fmt: skip


@dataclass(frozen=True)
class Injection:
    """One fault at one place."""

    name: str
    words: str
    rules: dict[Way, Rule] = field(default_factory=dict)
    flaps: tuple[float, ...] = ()  # the rules come and go after these pauses, again and again
    kills: str = ""  # the host whose processes are all killed
    downs: str = ""  # the host that is taken down in peace
    restarts: str = ""  # the host whose processes are replaced one by one
    clock: int = 0  # seconds that the clock of WRONG_CLOCK is moved


def injection(name: str, random: Random) -> Injection:
    """Return the fault of that name; the seed chooses its place and size."""
    some = random.sample(WORKING, random.randint(1, 2))
    one = some[0]
    if name == "cut":
        return Injection(name, f"{one} cut off", _both(one, EVERY))
    if name == "one-way":
        heard = random.random() < 0.5
        way = (EVERY, one) if heard else (one, EVERY)
        told = f"{one} {'is heard, but hears nobody' if heard else 'hears, but is not heard'}"
        return Injection(name, told, {way: Rule.cut()})
    if name == "loss":
        return Injection(name, "20% of all frames", {(x, EVERY): Rule(loss=0.2) for x in WORKING})
    if name == "delay":
        return Injection(name, "300 ms each way", {(x, EVERY): Rule(delay=0.3) for x in WORKING})
    if name == "parted":
        return Injection(name, "a, b, c from each other", _pairs(list(WORKING), list(WORKING)))
    if name == "broker":
        return Injection(name, f"from {' and '.join(some)}", _pairs(some, [BROKER]))
    if name == "store":
        return Injection(name, f"from {' and '.join(some)}", _pairs(some, [STORE]))
    if name == "kill":
        return Injection(name, f"all processes of {one}", kills=one)
    if name == "clock":
        seconds = random.choice((-1, 1)) * random.randint(120, 600)
        return Injection(name, f"{WRONG_CLOCK} by {seconds} s", clock=seconds)
    if name == "slow":
        rules = {way: Rule(rate=_SLOW_BYTES) for way in ((one, EVERY), (EVERY, one))}
        return Injection(name, f"{one} at 100 kB/s", rules)
    if name == "flapping":
        pauses = tuple(round(random.uniform(1.0, 4.0), 1) for _ in range(16))
        return Injection(name, f"{one} cut off for 1 to 4 s at a time", _both(one, EVERY), pauses)
    if name == "down":
        return Injection(name, f"`caudal down` on {one}", downs=one)
    if name == "rolling":
        return Injection(name, f"`restart --rolling` of {one}", restarts=one)
    raise ValueError(f"no fault {name!r}: choose from {', '.join(NAMES)}")


def _both(one: str, other: str) -> dict[Way, Rule]:
    return {way: Rule.cut() for way in ((one, other), (other, one))}


def _pairs(some: list[str], others: list[str]) -> dict[Way, Rule]:
    found: dict[Way, Rule] = {}
    for one in some:
        for other in others:
            if one != other:
                found |= _both(one, other)
    return found
