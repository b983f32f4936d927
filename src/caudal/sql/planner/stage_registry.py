"""The stages of a plan under construction. Stages that differ only in their columns become one.

The identity of a stage is everything but its SELECT list: what it reads, filters, groups, orders
and cuts, and how its output is partitioned. A query that needs a further column or aggregate of a
stage adds it to the list.

A scan that calls an expensive function is not shared with one that does not. Each is told by its
hint (hints.py) which rows no query keeps, and a shared scan keeps the rows of both. So sharing
would compute the function for rows whose value nobody reads.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from caudal.sql.planner.plan import Fold, Partition, PartitionKind, Scan
from caudal.sql.planner.select_block import RESERVED, SelectBlock, canonical
from caudal.sql.planner.types import Type
from caudal.sql.quoting import folded, quote
from caudal.sql.table_needs import EXPENSIVE

_EXPENSIVE_CALL = re.compile(rf"\b(?:{'|'.join(EXPENSIVE)})\(", re.IGNORECASE)
_PLAIN_NAME = re.compile(r'"?(?:(?:scan|fold)\d+_)?(\w+)"?')

Identity = tuple[str, ...]
Place = Literal["scan", "fold", "one"]


@dataclass(frozen=True)
class StageCut:
    """How a query wants the output of a stage partitioned.

    `uncast` are the keys before they are cast to the type in which they are hashed, with the types
    that they are taken to have.
    """

    query: str
    kind: PartitionKind
    keys: tuple[str, ...] = ()
    uncast: tuple[tuple[str, Type], ...] = ()


@dataclass
class StageDraft:
    """A stage to which queries may still add columns."""

    name: str
    place: Place
    block: SelectBlock
    body: str
    inputs: tuple[str, ...]
    kind: PartitionKind
    keys: list[str] = field(default_factory=list)
    listed: dict[str, str] = field(default_factory=dict)  # expression -> name
    hidden: set[str] = field(default_factory=set)
    queries: list[str] = field(default_factory=list)
    operators: list[str] = field(default_factory=list)
    is_verbatim: bool = False
    written_keys: tuple[str, ...] = ()  # the keys over the block, with marks for names
    inferred: dict[str, Type] = field(default_factory=dict)  # expression -> the type it should have

    def column(self, text: str, *, hidden: bool = False) -> str:
        """Return the output column of an expression; add it if it is new."""
        if text in self.listed:
            name = self.listed[text]
            if not hidden:
                self.hidden.discard(name)
            return name
        name = self._new_name(text)
        self.listed[text] = name
        if hidden:
            self.hidden.add(name)
        return name

    def _new_name(self, text: str) -> str:
        plain = _PLAIN_NAME.fullmatch(text)
        suffix = plain.group(1) if plain and not RESERVED.fullmatch(text) else ""
        taken = {folded(name) for name in self.listed.values()}
        name = f"{self.name}_{suffix}" if suffix else f"{self.name}__{len(self.listed) + 1}"
        while folded(name) in taken:
            name += "_"
        return name

    def copied(self) -> "StageDraft":
        return replace(
            self,
            keys=list(self.keys),
            listed=dict(self.listed),
            hidden=set(self.hidden),
            queries=list(self.queries),
            operators=list(self.operators),
            inferred=dict(self.inferred),
        )

    def sql(self) -> str:
        if self.is_verbatim:
            return self.body
        return self.sql_over(self.body)

    def sql_over(self, body: str, more: Sequence[str] = ()) -> str:
        """Return the SELECT with another body, and with `more` items at the end of its list."""
        items = [f"{text} AS {quote(name)}" for text, name in self.listed.items()]
        return f"SELECT {', '.join((*items, *more)) or '1 AS one'} {body}"

    def partition(self) -> Partition:
        return Partition(self.kind, tuple(self.keys), tuple(sorted(self.hidden)))


@dataclass
class StageRead:
    """One read of a stage by a query. Only rows with a key of the stage `matched` matter to it."""

    stage: str
    query: str
    matched: str | None = None
    type: str = ""


@dataclass
class StageRegistry:
    """All stages of a plan. `shared` are those that a query of the first pass reads uncut."""

    shared: frozenset[Identity] = frozenset()
    is_trial: bool = False  # made only to see which stages could be shared
    drafts: dict[Identity, StageDraft] = field(default_factory=dict)
    uncut: set[Identity] = field(default_factory=set)
    reads: list[StageRead] = field(default_factory=list)
    _counts: dict[str, int] = field(default_factory=dict)
    _before: dict[Identity, StageDraft | None] = field(default_factory=dict)  # what `undo` restores
    _uncut_before: set[Identity] = field(default_factory=set)
    _reads_before: int = 0

    def close(
        self,
        block: SelectBlock,
        place: Place,
        inputs: Iterable[str],
        cut: StageCut,
        needed: Iterable[int],
        kinds: Mapping[int, Type],
    ) -> tuple[str, dict[int, str]]:
        """Return the stage that ends here, and the names of the needed columns in its output.

        `kinds` are the types that the columns are taken to have.
        """
        keys, kind, query = cut.keys, cut.kind, cut.query
        columns = sorted(set(needed) & block.columns.keys())
        texts = [block.columns[column] for column in columns]
        uncast = [text for text, _ in cut.uncast]
        body, *rest = canonical([block.body(), *keys, *texts, *uncast])
        listed_keys, rest = rest[: len(keys)], rest[len(keys) :]
        listed, uncast = rest[: len(texts)], rest[len(texts) :]
        ordered = tuple(dict.fromkeys(inputs))
        identity = (*_shape(block, place, body, kind), *ordered, "|", *listed_keys)
        if block.may_fail((*keys, *texts)):
            identity = (*identity, query)  # an error must not reach another query
        if place == "scan" and any(map(_EXPENSIVE_CALL.search, texts)):
            identity = (*identity, "expensive")
        self._remember(identity)
        draft = self.drafts.get(identity)
        if draft is None:
            name = self._name("scan" if place == "scan" else "fold")
            draft = StageDraft(name, place, block, body, ordered, kind, written_keys=keys)
            self.drafts[identity] = draft
        draft.operators.extend(o for o in block.operators if o not in draft.operators)
        draft.keys = [draft.column(text, hidden=True) for text in listed_keys]
        draft.inferred.update(zip(listed, (kinds[column] for column in columns), strict=True))
        draft.inferred.update(zip(uncast, (kind for _, kind in cut.uncast), strict=True))
        if query not in draft.queries:
            draft.queries.append(query)
        if not block.is_cut:
            self.uncut.add(identity)
        named = {c: quote(draft.column(text)) for c, text in zip(columns, listed, strict=True)}
        return draft.name, named

    def verbatim(self, table: str, sql: str, operators: tuple[str, ...], query: str) -> str:
        """Return a gathered scan with this text, unchanged."""
        identity = ("scan", table, sql, "verbatim")
        self._remember(identity)
        draft = self.drafts.get(identity)
        if draft is None:
            block = SelectBlock("", {}, table=table, operators=operators)
            draft = StageDraft(
                self._name("scan"), "scan", block, sql, (), "gather", is_verbatim=True
            )
            draft.operators.extend(operators)
            self.drafts[identity] = draft
        if query not in draft.queries:
            draft.queries.append(query)
        return draft.name

    def is_shared(
        self, block: SelectBlock, place: Place, inputs: Iterable[str], kind: PartitionKind
    ) -> bool:
        """Return whether another query gathers the same stage without LIMIT."""
        body = canonical([block.body()])[0]
        ordered = tuple(dict.fromkeys(inputs))
        return (*_shape(block, place, body, kind), *ordered, "|") in self.shared

    def draft(self, name: str) -> StageDraft:
        return next(draft for draft in self.drafts.values() if draft.name == name)

    def begin(self) -> None:
        """Begin a query: `undo` takes back what is added from here on."""
        self._before = {}
        self._uncut_before = set(self.uncut)
        self._reads_before = len(self.reads)

    def undo(self) -> None:
        """Take back what was added since `begin`."""
        for identity, draft in self._before.items():
            if draft is None:
                del self.drafts[identity]
            else:
                self.drafts[identity] = draft
        self.uncut = self._uncut_before
        del self.reads[self._reads_before :]
        self.begin()

    def _remember(self, identity: Identity) -> None:
        if identity not in self._before:
            draft = self.drafts.get(identity)
            self._before[identity] = draft.copied() if draft is not None else None

    def behind(self, stages: Iterable[str]) -> list[StageDraft]:
        """Return these stages and all stages that they read, each after its inputs."""
        wanted = set(stages)
        found = []
        for draft in reversed(self.drafts.values()):
            if draft.name in wanted:
                found.append(draft)
                wanted.update(draft.inputs)
        return found[::-1]

    def _name(self, prefix: str) -> str:
        self._counts[prefix] = self._counts.get(prefix, 0) + 1
        return f"{prefix}{self._counts[prefix]}"

    def scans(self) -> tuple[Scan, ...]:
        return tuple(
            Scan(
                d.name, d.block.table or "", d.sql(), d.partition(), tuple(d.operators),
                tuple(d.queries),
            )
            for d in self.drafts.values()
            if d.place == "scan"
        )  # fmt: skip

    def folds(self) -> tuple[Fold, ...]:
        return tuple(
            Fold(
                d.name, d.inputs, d.sql(), d.partition(), "one" if d.place == "one" else "all",
                tuple(d.operators), tuple(d.queries),
            )
            for d in self.drafts.values()
            if d.place != "scan"
        )  # fmt: skip


def _shape(block: SelectBlock, place: Place, body: str, kind: PartitionKind) -> Identity:
    """Return what identifies a stage without its keys.

    One group of all rows has no GROUP BY in the body, so it is told apart from plain rows.
    """
    rows = "rows" if block.group is None else "groups"
    return (place, block.table or "", rows, body, kind)
