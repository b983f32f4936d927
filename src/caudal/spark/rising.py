"""Progress that never goes back."""

from dataclasses import dataclass, field

from caudal.run_options import Progress


@dataclass
class RisingProgress:
    """Passes progress on. Spark tells how many tasks of a wave have ended. The batches of the wave
    are only then noted, one by one from its first; and a job that adds a stage has done less."""

    to: Progress
    _done: dict[str, int] = field(default_factory=dict)  # by table

    def table(self, name: str, done_bytes: int, total_bytes: int) -> None:
        self._done[name] = max(done_bytes, self._done.get(name, 0))
        self.to.table(name, self._done[name], total_bytes)

    def query(self, name: str, seconds: float) -> None:
        self.to.query(name, seconds)
