"""Loads the sentiment models that cluster.toml names, before the worker takes a task.

Rules
1. torch keeps all threads of its process waiting while it loads, for seconds on a busy machine. A
   worker that loaded it within a task sent no heartbeats meanwhile, and medics replaced it, again
   and again, so its job never ended. So it loads first, and announces that it may be silent.
2. Each model scores one text, because libraries load more when they are first used.
3. A model that cannot be loaded is logged, and the worker goes on: it can run all other tasks. A
   task that needs the model is handed back, for a worker that has it.
"""

import logging
from collections.abc import Iterable

from caudal.errors import CaudalError
from caudal.kernels.sentiment import SentimentModel, load_model
from caudal.process.heart import Heart
from caudal.process.logs import fields

_MOST_SECONDS = 600.0  # for all models
_QUIET_SECONDS = 60.0

_log = logging.getLogger(__name__)


def ready_models(names: Iterable[str], beating: Heart | None) -> dict[str, SentimentModel]:
    """Return these models, by name."""
    wanted = list(names)
    if not wanted:
        return {}
    if beating is None:
        return _loaded(wanted)
    return beating.through(lambda: _loaded(wanted), _MOST_SECONDS, _QUIET_SECONDS)


def _loaded(names: list[str]) -> dict[str, SentimentModel]:
    import pyarrow as pa

    found = {}
    for name in names:
        try:
            model = load_model(name)
            model.score(pa.array(["a first text"]))
            found[name] = model
        except CaudalError as error:
            _log.error("a sentiment model cannot be loaded", extra=fields(reason=str(error)))
    return found
