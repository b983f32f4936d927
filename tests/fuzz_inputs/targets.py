"""What is fuzzed: each target damages an honest object and reads it, and names the errors that its
reader documents. Any other error, and any crash, is a fault."""

from functools import cache, partial
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from caudal.client.results import rejects_of
from caudal.cluster.roster import Member, MemberKind
from caudal.duck.steps import stored_piece
from caudal.errors import CaudalError, DataError, FormatError, QueryError, UsageError
from caudal.files.cleaning import Wanted
from caudal.files.pieces import require_columns
from caudal.formats import batch, frame, job, mapped, merged, message, outcomes, outputs
from caudal.formats import streams as arrow_streams
from caudal.jobs.plan import from_json
from caudal.kernels.csv import Batch, Header, NumberColumn, read_batch
from caudal.kernels.hashing import KeyFilter, hash_rows, key_words, partition_of
from caudal.kernels.literals import items, names
from caudal.kernels.sentiment.column import score
from caudal.medic.complaints import Complaints
from caudal.medic.service import Medic
from caudal.medic.supervision import SupervisionTiming, WatchList, admit
from caudal.process.wire import Seal
from tests.fuzz_inputs import seeds
from tests.fuzz_inputs.damage import damaged, damaged_json, forged
from tests.fuzz_inputs.dataset_targets import DATASET_TARGETS
from tests.fuzz_inputs.forging import Target, redocumented, reframed
from tests.fuzz_inputs.guarded import Guarded

WANTED = Wanted("t", ("k",), (NumberColumn("n", 0, 0), NumberColumn("n", 9, 2)), ("text",))


@cache
def _guarded() -> Guarded:
    return Guarded()


# Kernels


def _csv(chance: Random) -> object:
    data = chance.choice(seeds.RECORDS) * chance.choice((1, 1, 3, 10))
    data = damaged(data, chance) if chance.random() < 0.9 else data
    place = _guarded().at_end if chance.random() < 0.7 else _guarded().at_start
    columns = seeds.COLUMNS[: chance.randint(2, 3)] + ("extra",) * (chance.random() < 0.1)
    newlines = chance.choice((0, 1, -9, 10**6, data.count(b"\n")))
    cut = Batch("f", Header(columns), 0, 2, 0, newlines, place(data[: 1 << 16]))
    found = read_batch(cut, ["k"], [NumberColumn("n", *chance.choice(((0, 0), (18, 4))))], ["k"])
    rows = np.arange(found.table.num_rows)
    for array in (*found.table.columns, *found.later(rows).values(), found.numbers[0].values):
        array.validate(full=True)
    return cut.lines(found.starts)


def _text_column(chance: Random) -> pa.Array:
    """Texts of damaged bytes, in memory that ends where it may not be read on."""
    texts = [chance.choice(seeds.TEXTS).encode() for _ in range(chance.randint(1, 6))]
    texts = [damaged(one, chance) if chance.random() < 0.8 else one for one in texts]
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(_guarded().at_end(b"".join(texts)))]
    array = pa.Array.from_buffers(pa.string(), len(texts), buffers)
    if chance.random() < 0.4:  # after Arrow has looked at them
        offsets[chance.randrange(len(offsets))] += chance.choice((1, -1, 4096, -4096, 1 << 30))
    return array


def _forged_columns(chance: Random) -> list[pa.Array]:
    """Columns as Arrow reads them from a damaged stream, unchecked."""
    try:
        data = forged(chance.choice(seeds.plain_streams()), chance)
        table = pa.ipc.open_stream(pa.py_buffer(data)).read_all()
        if table.num_rows > 1 << 20:
            return []
        return [chunk for column in table.columns for chunk in column.chunks]
    except (pa.ArrowException, OSError, ValueError, KeyError):  # KeyError: a type beyond pyarrow
        return []


def _literals(chance: Random) -> object:
    read = chance.choice((items, names))
    return [read(one) for one in _columns(chance)]


def _sentiment(chance: Random) -> object:
    return [score(one) for one in _columns(chance)]


def _columns(chance: Random) -> list[pa.Array]:
    return [_text_column(chance)] if chance.random() < 0.7 else _forged_columns(chance)


def _hashing(chance: Random) -> object:
    if chance.random() < 0.2:
        return hash_rows([_text_column(chance)])
    return [partition_of([one], chance.randint(1, 99)) for one in _forged_columns(chance)]


def _filters(chance: Random) -> object:
    found = [key_words(pa.chunked_array([one])) for one in _forged_columns(chance)]
    return [KeyFilter(words).may_hold(words).all() for words in found]


# Objects


def _batch(chance: Random) -> object:
    data = reframed(seeds.chosen(seeds.batches, chance), chance)
    if chance.random() < 0.3:
        batch.check(data, "k")
    index, records = batch.view(data, "k")
    wanted = WANTED if index.records == "csv" else Wanted("t", index.columns[:2])
    require_columns(index.columns, wanted.columns, index.file, index.table)
    rows = stored_piece(index, records, wanted).read()
    every = np.arange(rows.table.num_rows)
    rows.later(every)
    return rows.lines(every), rows.table.validate(full=True)


def _typed_batch(chance: Random) -> object:
    """The stream of a client, damaged, under a digest that matches."""
    data = forged(chance.choice(seeds.plain_streams()), chance)
    table = arrow_streams.read_rows(data, "k", arrow_streams.CLIENTS)
    whole = seeds._batch(data, records="arrow", compress=chance.random() < 0.2)
    index, records = batch.view(whole, "k")
    rows = stored_piece(index, records, Wanted("t", tuple(table.column_names[:3]))).read()
    rows.table.validate(full=True)
    return rows.table.to_pydict()


def _stream(chance: Random) -> object:
    data = forged(chance.choice(seeds.streams()), chance)
    table = arrow_streams.read_rows(data, "k")
    return [_seen(column) for column in table.columns]


def _seen(column: pa.ChunkedArray) -> object:
    """Touch every value, as whoever shows rows does."""
    return [str(chunk) for chunk in column.chunks], column.nbytes


def _mapped(chance: Random) -> object:
    reader = mapped.open_bytes(reframed(seeds.chosen(seeds.mapped_objects, chance), chance), "k")
    reader.rejects()
    reader.streams("scan_1")
    if reader.index.failed and chance.random() < 0.3:
        return reader.streams("scan_3")  # QueryError, or it was renamed by the damage
    return [reader.slice("scan_1", 0), reader.slice("scan_1", 1), reader.slice("scan_2", 0)]


def _merged(chance: Random) -> object:
    found = merged.decode(reframed(seeds.chosen(seeds.merged_objects, chance), chance), "k")
    return [one.index.stage("scan_1", "k").slices[0] for one in found.members], found.end


def _fold(chance: Random) -> object:
    data = reframed(seeds.chosen(seeds.folds, chance), chance)
    read = frame.of_bytes(data)
    index, body = outputs.decode_fold(read, "k")
    spans = [span for span in index.stage("k").slices if span.length]
    return [mapped.read_rows(mapped.read_stream(read, body, span, "k")) for span in spans]


def _result(chance: Random) -> object:
    data = reframed(seeds.chosen(seeds.results, chance), chance)
    if chance.random() < 0.2:
        return rejects_of(data)
    return [_seen(column) for column in outputs.decode_result(data, "k")[1].columns]


# Documents and messages


def _job(chance: Random) -> object:
    found = job.decode(redocumented(seeds.chosen(seeds.jobs, chance), chance), "k")
    return from_json(found.plan)


def _plan(chance: Random) -> object:
    return from_json(damaged_json(seeds.plan(), chance))


def _end(chance: Random) -> object:
    return outcomes.decode_end(redocumented(seeds.ends()[0], chance), "k")


def _outcome(chance: Random) -> object:
    return outcomes.decode_outcome(redocumented(seeds.outcomes()[0], chance), "k")


def _message(chance: Random) -> object:
    found = message.decode(damaged_json(seeds.chosen(seeds.messages, chance), chance))
    return found.lane


class _Ears:
    """As much of a medic as hears."""

    def __init__(self) -> None:
        self.heart = SimpleNamespace(seal=Seal(b"a secret of sixteen"))
        self.session, self.ward = (
            "s",
            admit(WatchList(), {"worker-1": SupervisionTiming(), "medic-1": SupervisionTiming()}),
        )
        self._ear = SimpleNamespace(sendto=lambda data, sender: None)
        self.me = Member("medic-1", MemberKind.MEDIC, "a", "127.0.0.1", 8470, 1)
        other = Member("worker-1", MemberKind.WORKER, "b", "127.0.0.2", 0, 0)
        self.cluster = SimpleNamespace(members=(self.me, other))  # so files of hosts are compared
        self.complaints = Complaints()
        self._digests = {"store": "00"}

    def __getattr__(self, name: str) -> Any:
        """Its methods are a medic's."""
        return partial(getattr(Medic, name), self)


def _heartbeat(chance: Random) -> object:
    ears = _Ears()
    sealed = ears.heart.seal.close(damaged_json(seeds.chosen(seeds.beats, chance), chance))
    heard = damaged(sealed, chance) if chance.random() < 0.1 else sealed
    Medic.hear(cast(Any, ears), heard, ("127.0.0.1", 1))
    return ears.ward


DECODERS = (FormatError,)
OF_QUERIES = (FormatError, QueryError)  # an object may say that its query failed
TARGETS = {
    "csv": Target(_csv, (), 4),
    "literals": Target(_literals, (DataError, UsageError), 3),
    "sentiment": Target(_sentiment, (DataError, TypeError), 3),
    "hashing": Target(_hashing, (DataError, UsageError), 3),
    "filters": Target(_filters, (DataError, UsageError)),
    "batch": Target(_batch, (FormatError, DataError), 4),
    "typed batch": Target(_typed_batch, (FormatError, DataError), 4),
    "stream": Target(_stream, DECODERS, 4),
    "mapped": Target(_mapped, OF_QUERIES, 3),
    "merged": Target(_merged, OF_QUERIES),
    "fold": Target(_fold, OF_QUERIES, 2),
    "result": Target(_result, OF_QUERIES, 2),
    "job": Target(_job, DECODERS),
    "plan": Target(_plan, DECODERS),
    "end": Target(_end, DECODERS),
    "outcome": Target(_outcome, DECODERS),
    "message": Target(_message, DECODERS),
    "heartbeat": Target(_heartbeat, ()),
    **DATASET_TARGETS,
}
NAMES = tuple(name for name, target in TARGETS.items() for _ in range(target.weight))
assert all(issubclass(one, CaudalError | TypeError) for t in TARGETS.values() for one in t.errors)


def run_case(seed: int, number: int) -> str:
    """Run one case: the target's name, and ` refused` behind it if the input was."""
    name = NAMES[number % len(NAMES)]
    target = TARGETS[name]
    try:
        target.read(Random(f"{seed}/{number}"))
    except target.errors:
        return f"{name} refused"
    return name
