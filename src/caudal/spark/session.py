"""A session of Spark, classic or Connect, behind one face: run, watch, cancel.

An action runs in a thread of its own. The caller's thread reports progress meanwhile, and if it is
interrupted (Ctrl-C), it cancels what the action started in Spark and waits for its end.
"""

import contextlib
import secrets
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeVar

from caudal import extras
from caudal.errors import SparkFailedError, UsageError
from caudal.run_options import SparkOptions
from caudal.spark.reasons import JVM_ENDED, errors_of_spark, quiet_logs, spark_errors
from caudal.spark.settings import settings
from caudal.spark.starting import started_session

Answer = TypeVar("Answer")
Share = Callable[[float], None]  # told which part of an action is done, from 0 to 1

_LOOK_SECONDS = 0.2
_LEAST_PARALLELISM = 4  # of a server that others may use, too
_RANGE = 1 << 16  # rows, so that all parts have some


@contextlib.contextmanager
def open_session(options: SparkOptions) -> Iterator["SparkSide"]:
    """Provide the given session, that of the process, or one that ends with the block."""
    extras.require("spark", "the Spark engine")
    given = options.session
    if given is not None and (options.remote or options.master):
        raise UsageError("a session and another Spark (remote, master): leave one of them out")
    if given is not None and not (hasattr(given, "createDataFrame") and hasattr(given, "conf")):
        raise UsageError(
            f"spark={given!r} is no session of Spark: give a SparkSession, "
            'or caudal.SparkOptions(master="local[2]")'
        )
    with quiet_logs(), contextlib.ExitStack() as opened:
        if given is None:
            opened.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore", FutureWarning)  # of PySpark, about versions of pandas
        chosen = opened.enter_context(started_session(options)) if given is None else given
        opened.enter_context(errors_of_spark())
        _require_open(chosen)
        opened.enter_context(settings(chosen))
        yield SparkSide(chosen)


def _require_open(session: Any) -> None:
    """Raise an error for a session that was stopped."""
    context = None if _is_connect(session) else session.sparkContext
    stopped = getattr(session, "is_stopped", False) if context is None else context._jsc is None
    if stopped is True:
        raise UsageError("the session of Spark was stopped: give one that is open")


def _is_connect(session: Any) -> bool:
    return "connect" in type(session).__module__


@dataclass
class SparkSide:
    """A session, and how its actions are watched and cancelled."""

    session: Any
    _cached: list[Any] = field(default_factory=list)

    @property
    def is_local(self) -> bool:
        """Whether executors are this machine's, with this environment."""
        return self._context is not None and str(self._context.master).startswith("local")

    @cached_property
    def parallelism(self) -> int:
        """How many tasks run at a time, as far as Spark knows. A server of Connect does not say,
        but it cuts a range into as many parts."""
        if self._context is not None:
            return int(self._context.defaultParallelism)
        return max(_LEAST_PARALLELISM, self.run(partial(_parts_of_a_range, self.session)))

    @property
    def _context(self) -> Any:
        """The context of a classic session; None: Connect."""
        return None if _is_connect(self.session) else self.session.sparkContext

    @contextlib.contextmanager
    def frames(self) -> Iterator[None]:
        """Free what is kept at the end of the block."""
        try:
            yield
        finally:
            kept, self._cached = self._cached, []
            for frame in kept:
                with contextlib.suppress(Exception):  # the session may be gone
                    frame.unpersist()

    def keep(self, frame: Any) -> Any:
        """Return a frame whose rows are computed once, by the first action that needs them."""
        kept = frame.persist()
        self._cached.append(kept)
        return kept

    def run(self, action: Callable[[], Answer], told: Share | None = None) -> Answer:
        """Run an action of Spark; cancel it if this thread is interrupted. Its status, which costs
        calls of Java, is asked only for a listener."""
        with spark_errors("Spark failed"), self._noted_end():
            watched = _ClassicAction(self._context) if self._context else _Remote(self.session)
            future: Future[Answer] = Future()
            thread = self._thread(partial(_act, watched, action, future))
            thread.start()
            try:
                while thread.is_alive():
                    thread.join(_LOOK_SECONDS)
                    if told is not None:
                        told(watched.share())
            except BaseException:
                while thread.is_alive():  # it may start the next job of Spark just now
                    with contextlib.suppress(Exception):
                        watched.cancel()
                    thread.join(_LOOK_SECONDS)
                raise
            finally:
                watched.end()
            return future.result()

    def _thread(self, target: Callable[[], None]) -> threading.Thread:
        """Return a thread with the properties of this one in Spark, such as the user's scheduler
        pool and tags."""
        if self._context is not None:
            from pyspark import InheritableThread
            from pyspark.sql import is_remote

            if not is_remote():  # else it would look for a client of Connect
                inheriting: threading.Thread = InheritableThread(
                    target, session=self.session, daemon=True
                )
                return inheriting
        return threading.Thread(target=target, daemon=True)

    @contextlib.contextmanager
    def _noted_end(self) -> Iterator[None]:
        """Say so if an action failed because the JVM has ended; its own errors do not."""
        try:
            yield
        except Exception as error:
            if self._context is not None:
                try:
                    self._context.defaultParallelism  # noqa: B018 - a call
                except Exception:
                    raise SparkFailedError(f"Spark failed: {JVM_ENDED}") from error
            raise


def _parts_of_a_range(session: Any) -> int:
    numbered = session.range(_RANGE).selectExpr("spark_partition_id() AS part")
    with quiet_logs(), contextlib.suppress(Exception):  # a server without such numbers
        return int(numbered.selectExpr("max(part)").collect()[0][0]) + 1
    return 0


def _act(watched: "_Watched", action: Callable[[], Answer], future: "Future[Answer]") -> None:
    try:
        watched.begin()
        future.set_result(action())
    except BaseException as error:
        future.set_exception(error)


class _ClassicAction:
    """An action of a classic session: a group of jobs."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._group = f"caudal-{secrets.token_hex(8)}"

    def begin(self) -> None:
        self._context.setJobGroup(self._group, "caudal", True)

    def share(self) -> float:
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        total = sum(stage.numTasks for stage in stages if stage)
        done = sum(stage.numCompletedTasks for stage in stages if stage)
        return done / total if total else 0.0

    def cancel(self) -> None:
        self._context.cancelJobGroup(self._group)

    def end(self) -> None: ...


class _Remote:
    """An action of a Connect session: operations with a tag."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._tag = f"caudal-{secrets.token_hex(8)}"
        self._share = 0.0
        self._thread = 0  # of the action
        self._tags = {self._tag}
        with contextlib.suppress(Exception):  # a server without tags
            self._tags |= session.getTags()  # the user's
        with contextlib.suppress(Exception):  # a server without progress
            session.registerProgressHandler(self._note)

    def begin(self) -> None:
        self._thread = threading.get_ident()
        with contextlib.suppress(Exception):  # a server without tags
            for tag in self._tags:
                self._session.addTag(tag)

    def _note(self, stages: Any = (), **_: Any) -> None:
        """Note the progress of the action; PySpark also tells that of operations of other threads,
        each from its own."""
        if threading.get_ident() != self._thread:
            return
        total = sum(stage.num_tasks for stage in stages or ())
        done = sum(stage.num_completed_tasks for stage in stages or ())
        self._share = done / total if total else self._share

    def share(self) -> float:
        return self._share

    def cancel(self) -> None:
        self._session.interruptTag(self._tag)

    def end(self) -> None:
        with contextlib.suppress(Exception):
            self._session.removeProgressHandler(self._note)


_Watched = _ClassicAction | _Remote
