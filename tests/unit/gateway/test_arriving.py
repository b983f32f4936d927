"""Who has to leave when there are too many connections."""

from dataclasses import dataclass

from caudal.gateway.connections import Arrivals


@dataclass(eq=False)
class Held:
    """A connection that is at work or not."""

    name: str
    at_work: bool = False
    is_dropped: bool = False

    def is_at_work(self) -> bool:
        return self.at_work

    def drop(self) -> None:
        self.is_dropped = True


def filled(*known: tuple[Held, str]) -> Arrivals:
    arrivals = Arrivals(len(known))
    for one, owner in known:
        arrivals.add(one)
        arrivals.know(one, owner)
    return arrivals


def test_strangers_push_each_other_out_however_old_the_known_are() -> None:
    berta, first, second, third = Held("berta"), Held("1"), Held("2"), Held("3")
    arrivals = Arrivals(2)
    arrivals.add(berta)
    arrivals.know(berta, "berta")
    for one in (first, second, third):
        arrivals.add(one)
    assert [first.is_dropped, second.is_dropped, third.is_dropped] == [True, True, False]
    assert not berta.is_dropped
    assert len(arrivals) == 2


def test_the_owner_with_the_most_makes_room() -> None:
    berta = Held("berta")
    alices = [Held("a1", at_work=True), Held("a2"), Held("a3")]
    arrivals = filled((berta, "berta"), *((one, "alice") for one in alices))
    arrivals.add(Held("new"))
    assert [one.is_dropped for one in alices] == [False, True, False]
    assert not berta.is_dropped


def test_who_is_served_stays_and_the_newest_leaves() -> None:
    known = [Held("a", at_work=True), Held("b", at_work=True)]
    arrivals = filled(*((one, one.name) for one in known))
    newest = Held("new")
    arrivals.add(newest)
    assert newest.is_dropped
    assert not any(one.is_dropped for one in known)
    assert len(arrivals) == 2


def test_who_has_left_is_forgotten() -> None:
    arrivals, one = Arrivals(1), Held("one")
    arrivals.add(one)
    arrivals.remove(one)
    arrivals.remove(one)
    arrivals.know(one, "late")
    assert len(arrivals) == 0
