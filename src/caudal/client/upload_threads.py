"""Threads that execute an upload: some send batches, one follows the job and collects results.

The steps are those of `jobs/upload.py`, which the simulation of the task engine tests. This module
only adds concurrency.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from caudal.client.http import HttpGateways
from caudal.files.batches import warm_up
from caudal.files.ordered import in_order
from caudal.formats.outcomes import Outcome
from caudal.jobs.interfaces import ConflictError, GoneError
from caudal.jobs.resumed_files import IN_TRANSIT
from caudal.jobs.upload import Listener, Upload, Uploader, UploadRequest
from caudal.process.clock import SystemClock

LOOK_SOON_SECONDS, _LOOK_SECONDS = 0.02, 0.25  # at first, and later on
NEWS_SECONDS = 1.0  # of a look that waits at a gateway; also delays the end of a client that stops


@contextlib.contextmanager
def opened(
    gateways: HttpGateways, order: UploadRequest, listener: Listener, *, resume: bool = False
) -> Iterator[Upload]:
    """Create the job, or find it again. Its batches are then sent several at a time.

    On an error or Ctrl-C the upload is given up once the requests in progress are answered.
    """
    pool = ThreadPoolExecutor(IN_TRANSIT, "send")
    pool.submit(warm_up)  # while a gateway plans

    def each(work: Callable[[Any], Any], items: Iterable[Any]) -> Iterable[Any]:
        return in_order(pool, work, items, ahead=IN_TRANSIT - 1)

    client = Uploader(
        gateways,
        SystemClock(gateways.stop),
        pause_seconds=_LOOK_SECONDS,
        first_pause_seconds=LOOK_SOON_SECONDS,
        news_seconds=NEWS_SECONDS,
        look_first=resume,
        each=each,
        listener=listener,
    )
    try:
        yield _begun(client, order)
    except BaseException:
        gateways.give_up()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begun(client: Uploader, order: UploadRequest) -> Upload:
    try:
        return client.begin(order)
    except ConflictError:
        if not client.look_first:
            raise
        raise ConflictError(
            f"job {order.job_id} was started with another application, queries or parameters: "
            "resume it with the same"
        ) from None


def carry_out(errand: Upload, gateways: HttpGateways) -> Outcome:
    """Send everything while collecting results. Return the job's outcome."""
    pool = ThreadPoolExecutor(1, "follow")
    try:
        following = pool.submit(errand.follow, gateways.stop.requested)
        try:
            for _ in errand.send():
                if following.done():
                    break
        except GoneError as error:
            if error.outcome is None:
                raise
        return following.result()
    except BaseException:
        gateways.give_up()
        raise
    finally:
        pool.shutdown()
