"""Mistakes in TOML files are told in the words of the file."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caudal.application.folder import _AppFile
from caudal.cluster.settings import TEMPLATE, ClusterSettings
from caudal.series.config import SeriesConfig
from caudal.toml import TomlError, decode_toml

CLUSTER = [
    ("workers = 2", "workers: unknown key; it belongs to [hosts.NAME]"),
    ("certificate = 'x'", "certificate: unknown key; it belongs to [tls]"),
    ("[hosts.a]\nworkrs = 2", "[hosts.a] workrs: unknown key; do you mean workers?"),
    ("[hosts.a]\nstore = 'x'", "[hosts.a] store: unknown key; it belongs to the top of the file"),
    ("[hosts.a]\nxyz = 2", "[hosts.a] xyz: unknown key"),
    ("[hosts.a]\n[hosts.b]\nport = 'x'", '[hosts.b] port = "x": must be a whole number'),
    ("[hosts.a]\nport = true", "[hosts.a] port = true: must be a whole number"),
    ("[hosts.a]\ntasks = ['map', 1]", '[hosts.a] tasks, item 2 = 1: must be text in "quotes"'),
    ("[hosts.a]\ntasks = 'map'", '[hosts.a] tasks = "map": must be a list in [brackets]'),
    ("[[hosts]]\nname = 'a'", "hosts: must be a table"),
    ("[quotas.owners.x]\njobs = 'y'", '[quotas.owners.x] jobs = "y": must be a whole number'),
    ("rate = 'fast'", 'rate = "fast": must be a number'),
    ("fsync = 'no'", 'fsync = "no": must be true or false'),
    (f"fsync = '{'x' * 99}'", "fsync: must be true or false"),
    ("[hosts.a]\nbroker = 'amqp://u:s3cret@h/'", "[hosts.a] broker: must be true or false"),
    ("[hosts.a]\nbroker = 'u:s3cret@h'", "[hosts.a] broker: must be true or false"),
    ("x =", "not valid TOML, correct it: Invalid value (at end of document)"),
]
APPLICATIONS = [
    ("", "tables: is missing"),
    ("[tables]\nname = 'x'", "tables: must be tables with [[double brackets]]"),
    ("[[table]]\nname = 'x'", "table: unknown key; do you mean tables?"),
    ("[[tables]]\nname = 'x'\n[[tables]]", "[[tables]] 2: name: is missing"),
    (
        "[[tables]]\nname = 'x'\nfiles = 'x.csv'",
        '[[tables]] 1: files = "x.csv": must be a list in [brackets]',
    ),
    (
        "[[tables]]\nname = 'x'\ndecimal = {a = 1}",
        '[[tables]] 1: decimal.a = 1: must be text in "quotes"',
    ),
    (
        "tables = []\n[parameters]\nx = 2020-01-01",
        '[parameters] x: must be text in "quotes", a whole number, a number or true or false',
    ),
]


@pytest.mark.parametrize(("text", "words"), CLUSTER)
def test_cluster_settings(text: str, words: str) -> None:
    assert _refusal(text, ClusterSettings) == words


@pytest.mark.parametrize(("text", "words"), APPLICATIONS)
def test_applications(text: str, words: str) -> None:
    assert _refusal(text, _AppFile) == words


def test_series() -> None:
    text = "dataset_id = ''\nprovider = ''\ntimezone = ''\nseries = []\n[source]\nformat = 'pdf'"
    words = '[source] format = "pdf": must be "xlsx", "xls" or "csv"'
    assert _refusal(text, SeriesConfig) == words


def test_a_file_that_is_not_utf_8() -> None:
    with pytest.raises(TomlError, match="not valid TOML: it is not UTF-8"):
        decode_toml(b"name = '\xff'", ClusterSettings)


def _refusal(text: str, kind: Any) -> str:
    with pytest.raises(TomlError) as caught:
        decode_toml(text.encode(), kind)
    return str(caught.value)


_KEYS = sorted(
    {one for kind in (ClusterSettings, _AppFile, SeriesConfig) for one in kind.__struct_fields__}
    | {"a", "jobs", "name", "files", "decimal", "owners", "port", "tasks", "format", "sheet"}
)
_VALUES = st.recursive(
    st.booleans() | st.integers(-9, 9) | st.just(0.5) | st.sampled_from(["", "csv", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=4)
    ),
    max_leaves=12,
)
_FILES = st.dictionaries(st.sampled_from(_KEYS), _VALUES, max_size=6)


@given(_FILES, st.sampled_from([ClusterSettings, _AppFile, SeriesConfig]))
def test_every_mistake_has_words_of_its_own(file: dict[str, Any], kind: Any) -> None:
    """Whatever msgspec refuses, the place is found: its own words never come through."""
    try:
        decode_toml(_written(file).encode(), kind)
        words = ""
    except TomlError as error:
        words = str(error)
    assert not any(one in words for one in ("$", "Expected", "Object"))


def _written(file: dict[str, Any]) -> str:
    return "\n".join(f"{key} = {_inline(value)}" for key, value in file.items())


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_inline(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    return json.dumps(value)


def test_what_caudal_writes_is_understood() -> None:
    text = TEMPLATE.format(
        name="caudal",
        store="store",
        broker="embedded",
        worker_memory="700MB",
        host="a",
        address="127.0.0.1",
        port=8420,
        medics=3,
        gateways=2,
        workers=2,
        metrics=8540,
        runs_broker=json.dumps(False),
    )
    assert decode_toml(text.encode(), ClusterSettings).hosts["a"].workers == 2
