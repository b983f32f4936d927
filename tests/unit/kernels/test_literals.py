"""`names` and `items` say what `ast.literal_eval` says, whichever of the two readers answers."""

import ast
import csv
import random
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from caudal import errors
from caudal.kernels import literals
from caudal.kernels.literals import exact, extract, scan

DATA = Path(__file__).parents[4] / "shared" / "data"
FUNCTIONS = {"items": literals.items, "names": literals.names}
WANTED = {"items": scan.ITEMS, "names": scan.NAMES}


def expected(text: str | None, function: str) -> list[str] | None:
    """The rules once more, written without regard to speed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            literal = ast.literal_eval(text or "")
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError, OverflowError):
        return None
    if not isinstance(literal, list):
        return None
    if function == "names":
        literal = [element.get("name") for element in literal if isinstance(element, dict)]
    strings = [element for element in literal if isinstance(element, str)]
    return ["".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in s) for s in strings]


def check(texts: Sequence[str | None]) -> None:
    for name, function in FUNCTIONS.items():
        assert function(pa.array(texts, pa.string())).to_pylist() == [
            expected(text, name) for text in texts
        ]


def is_sure(text: str, function: str) -> bool:
    texts = pa.array([text])
    start = texts.buffers()[2].address
    addresses = pa.array([start, start + len(text.encode())]).to_numpy()
    valid = texts.is_valid().to_numpy(zero_copy_only=False)
    return not extract.extract(addresses, valid, WANTED[function])[3][0]


@pytest.mark.parametrize(
    ("text", "strings"),
    [
        ("['Julie Strain']", ["Julie Strain"]),
        ("""["Cote D'Ivoire", 'x, y']""", ["Cote D'Ivoire", "x, y"]),
        (r"['Ren\u00e9', 'Ren\xe9', 'René']", ["René", "René", "René"]),
        (r"""['\'', "\"", '\\', '\n\t\r\a\b\f\v']""", ["'", '"', "\\", "\n\t\r\a\b\f\v"]),
        (r"['\0', '\12', '\1234', '\777', '\8']", ["\0", "\n", "S4", "\u01ff", "\\8"]),
        (r"['\d', '\é', '\ ']", ["\\d", "\\é", "\\ "]),
        ("[]", []),
        (" \t[ 'a' ,\n'b', ]\t ", ["a", "b"]),
        ("['a', 1, -2.5e-3, None, True, False, ['b'], {'c': 'd'}, {}]", ["a"]),
        (r"['\ud83d', '\ud83d\ude00']", ["\ufffd", "\ufffd\ufffd"]),
    ],
)
def test_items_of_plain_lists(text: str, strings: list[str]) -> None:
    assert is_sure(text, "items")
    assert literals.items(pa.array([text])).to_pylist() == [strings]
    assert expected(text, "items") == strings


@pytest.mark.parametrize(
    ("text", "strings"),
    [
        (
            "[{'id': 16, 'name': 'Animation'}, {'id': 35, 'name': 'Comedy'}]",
            ["Animation", "Comedy"],
        ),
        ("""[{'iso_3166_1': 'CI', "name": "Cote D'Ivoire"}]""", ["Cote D'Ivoire"]),
        (r"[{'name': 'Ren\u00e9'}]", ["René"]),
        ("[{'id': 1}, {'name': None}, {'name': ['x']}, {'name': {'name': 'x'}}, {}]", []),
        ("[{'name': 'first', 'name': 'last'}]", ["last"]),
        ("[{'name': 'first', 'name': 3}, {'name': 4, 'name': 'last'}]", ["last"]),
        ("[{'x': {'name': 'inner'}, 'y': [{'name': 'inner'}], 'name': 'outer'}]", ["outer"]),
        ("[{'name': 'a', 'x': {'name': 'inner'}}, ['name'], 'name', 5]", ["a"]),
        ("[{1: 'x', None: 'y', 'nam': 'z', 'names': 'z', 'name': ''}]", [""]),
    ],
)
def test_names_of_plain_dicts(text: str, strings: list[str]) -> None:
    assert is_sure(text, "names")
    assert literals.names(pa.array([text])).to_pylist() == [strings]
    assert expected(text, "names") == strings


@pytest.mark.parametrize(
    "text",
    [
        "['''a\n'b''', \"\"\"c\"\"\"]",
        "['a' 'b', 'c' \"d\"]",
        r"[r'\n', u'b', R'\'', b'bytes', B'\d', rb'x']",
        r"['\N{BULLET}', '\U0001f600', 'a\U0001F600b']",
        "['a\\\nb']",
        "[# a comment ]\n'a'\n]  # the end",
        "\n['a']\n\n",
        "['a',\r\n'b',\r'c']",
        "['tab\there', 'bell\x07', 'feed\x0c']",
        "[('a',), {'b'}, set(), 1_000, 0x1f, 0o7, .5, 5j, 1+2j, -1-2j, +3, - 4, ...]",
        r"[{'n\x61me': 'escaped key'}, {'na' 'me': 'joined key'}, {r'name': 'raw key'}]",
        "[{'name': 'a' 'b'}, {'name': r'c'}, {'name': b'd'}, {('x', 1): 2, 'name': 'e'}]",
        "[" * 40 + "'deep'" + "]" * 40,
        "[" + "1" * 100 + ", 'a']",
    ],
)
def test_less_plain_literals_are_read_by_the_slow_reader(text: str) -> None:
    assert expected(text, "items") is not None
    assert not is_sure(text, "items") or not is_sure(text, "names")
    check([text])


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "[", "]", "['a'", "['a]", "['a\\']", "['a\n']", "[,]", "['a',,]", "['a' 1]"),
        *(r"['\x4']", r"['\u12']", r"['\U00110000']", r"['\N{no such name}']", "['\\", "['a\0']"),
        *("[01]", "[1.2.3]", "[1e]", "[--1]", "[-]", "[-'a']", "[Nonesuch]", "[nan]", "[True1]"),
        *("{}", "()", "'a'", "1", "None", "['a'],", "['a'] ['b']", "['a'][0]", "['a']x"),
        *("[{'a'}}]", "[{'a': }]", "[{'a' 'b'}", "[{:}]", "[{'a': 1 'b': 2}]", "[{[]: 1}]"),
        *("[{{}}]", "['a'}", "{'a']", "[{'a': 1]", "[f'a']", "[*'a']", "[{**{}}]", "[x]"),
        *(" \n ['a']", "[a for a in 'b']", "[1" + "0" * 400 + " + 1j]", "[" + "1" * 5000 + "]"),
        *("[" * 300, "[" * 300 + "]" * 300, "-" * 100_000),
    ],
)
def test_what_is_no_list_gives_null(text: str) -> None:
    assert expected(text, "items") is None
    for function in FUNCTIONS.values():
        lists = function(pa.array([text, "[{'name': 'x'}, 'x']", text])).to_pylist()
        assert lists == [None, ["x"], None]


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())],
)
def test_every_text_type(kind: pa.DataType) -> None:
    texts = pa.array([None, "['a', 'b']", "oops", "[]", "('a',)", "['c']", "['a', 'b']"])
    lists = [None, ["a", "b"], None, [], None, ["c"], ["a", "b"]]
    typed = texts.dictionary_encode() if pa.types.is_dictionary(kind) else texts.cast(kind)
    for array in (typed, typed[2:6], typed[3:3], pa.chunked_array([typed[1:], typed[:4]])):
        result = literals.items(array)
        result.validate(full=True)
        assert isinstance(result, pa.ListArray)
        assert result.type == pa.list_(pa.string())
    assert literals.items(typed).to_pylist() == lists
    assert literals.items(typed[2:6]).to_pylist() == lists[2:6]
    chunks = pa.chunked_array([typed[1:], typed[:4]])
    assert literals.items(chunks).to_pylist() == lists[1:] + lists[:4]


def test_empty_and_null_columns() -> None:
    for function in FUNCTIONS.values():
        assert function(pa.nulls(3)).to_pylist() == [None, None, None]
        assert function(pa.array([None, None], pa.string())).to_pylist() == [None, None]
        assert function(pa.array([], pa.string())).to_pylist() == []
        assert function(pa.chunked_array([], pa.string())).to_pylist() == []
        assert function(pa.nulls(2)).type == pa.list_(pa.string())


def test_other_types_are_refused() -> None:
    with pytest.raises(errors.UsageError, match="not int64"):
        literals.items(pa.array([1]))


def test_columns_beyond_32_bits_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caudal.kernels.literals.columns.MAX_BYTES_PER_PART", 16)
    texts = pa.array(["['a']", "['b', 'c']", None, "['longer than 16 bytes']", "[r'd']", "['e']"])
    lists = [["a"], ["b", "c"], None, None, ["d"], ["e"]]
    assert literals.items(texts).to_pylist() == lists


def test_only_the_slow_reader_has_a_limit() -> None:
    strings = ["x" * 100] * (exact.MAX_BYTES // 100)
    texts = [repr(strings), repr(strings) + "#", repr(strings[:-1000]) + "#"]
    assert literals.items(pa.array(texts)).to_pylist() == [strings, None, strings[:-1000]]


def test_warning_filters_do_not_change_the_answer() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert literals.items(pa.array([r"['\d', b'\d']"])).to_pylist() == [["\\d"]]
    assert caught == []


characters = st.characters(exclude_categories=["Cs"])
awkward = st.sampled_from(["'", '"', "\\", "\n", "\r", "\0", "\x7f", "é", "\u2028", "😀", "{", ","])
strings = st.lists(characters | awkward, max_size=20).map("".join)
keys = st.sampled_from(["name", "name", "id", "names"]) | strings
scalars = strings | st.integers() | st.floats() | st.booleans() | st.none()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3)
)
dicts = st.dictionaries(keys, values, max_size=5)


@settings(deadline=None)
@given(st.lists(st.none() | st.lists(strings, max_size=6), max_size=5))
def test_items_agrees_with_python(lists: list[list[str] | None]) -> None:
    texts = pa.array([None if strings is None else repr(strings) for strings in lists], pa.string())
    assert literals.items(texts).to_pylist() == lists


@settings(deadline=None)
@given(st.lists(st.lists(dicts | values, max_size=4), max_size=3))
def test_both_agree_with_python_on_nested_values(lists: list[list[object]]) -> None:
    check([repr(elements) for elements in lists])


@settings(deadline=None)
@given(st.lists(st.lists(strings, max_size=4), max_size=3))
def test_escaped_text_agrees_with_python(lists: list[list[str]]) -> None:
    check([ascii(elements) for elements in lists])


fragments = st.sampled_from(
    [
        *"[]{},: \n\t#rb'\"\\10-.e_+()\0\réj",
        *("'''", "\\x4", "\\u00e", "\\N{DASH}", "\\ud800", "\\1", "None", "True", "False"),
        *("'name'", "'a'", "'name': 'x'", "{'name': "),
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(fragments, max_size=12).map("".join), max_size=8))
@example(["'a'", "'a': 1", "'name': 'a', 'name': 1"])
def test_random_tokens_agree_with_python(bodies: list[str]) -> None:
    check([f"[{body}]" for body in bodies] + ["[{" + body + "}]" for body in bodies] + [*bodies])


@settings(max_examples=300, deadline=None)
@given(st.lists(dicts | strings, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_damaged_texts_agree_with_python(elements: list[object], chance: random.Random) -> None:
    text = repr(elements)
    check([damaged(text, chance) for _ in range(10)])


def damaged(text: str, chance: random.Random) -> str:
    """The text with one to three characters deleted, inserted or replaced."""
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(text) + 1)
        removed = chance.choice([0, 1])
        inserted = chance.choice(["", *"'\"\\[]{},: \n#rbux0123456789eN-._", "''", "'name'"])
        text = text[:at] + inserted + text[at + removed :]
    return text


def column(file: str, name: str) -> list[str]:
    path = DATA / file
    if not path.exists():
        pytest.skip(f"{path} is absent")
    with path.open(newline="", encoding="utf-8") as lines:
        return [row[name] or "" for row in csv.DictReader(lines)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("file", "name", "function"),
    [
        ("movies/movies_metadata.csv", "genres", "names"),
        ("movies/movies_metadata.csv", "production_countries", "names"),
        ("movies/movies_metadata.csv", "spoken_languages", "names"),
        ("movies/credits.csv", "cast", "names"),
        ("books/books_data.csv", "authors", "items"),
        ("books/books_data.csv", "categories", "items"),
    ],
)
def test_real_columns_agree_with_python(file: str, name: str, function: str) -> None:
    texts = column(file, name)
    known = {text: expected(text, function) for text in set(texts)}
    read: Callable[[pa.Array], pa.ListArray] = FUNCTIONS[function]
    assert read(pa.array(texts)).to_pylist() == [known[text] for text in texts]
    sample = [text for text in known if text.startswith("[")][::20]
    assert sum(is_sure(text, function) for text in sample) >= 0.99 * len(sample)
