"""The lexicon file: every number equal to what the analyzer derives from it."""

from tests.unit.kernels.lexicon_text import lexicon_text
from textblob.en import sentiment as analyzer

from caudal.kernels.sentiment.lexicon import LEXICON_FILE, load_lexicon
from caudal.kernels.sentiment.tables import MAX_TOKEN, TABLES, compile_tables, token_key


def test_every_word_equals_the_analyzers() -> None:
    analyzer.load()
    expected = {
        form: (parts[None][0], parts[None][2], "RB" in parts) for form, parts in analyzer.items()
    }
    words = load_lexicon().words
    assert {w: (v.polarity, v.intensity, v.is_adverb) for w, v in words.items()} == expected


def test_the_shipped_file_holds_what_the_analyzers_file_holds() -> None:
    assert LEXICON_FILE.read_text(encoding="utf-8") == lexicon_text()


def test_the_file_states_its_version_and_licence() -> None:
    assert load_lexicon().version == "1.3"
    assert "PDDL" in LEXICON_FILE.read_text(encoding="utf-8")


def test_a_key_tells_tokens_of_one_length_apart() -> None:
    tokens = [b"a" * size + b"b" + b"a" * (MAX_TOKEN - 1 - size) for size in range(MAX_TOKEN)]
    assert len({token_key(token) for token in tokens}) == MAX_TOKEN


def test_the_tables_are_small_enough_for_the_cache() -> None:
    tables = compile_tables(load_lexicon().words)
    assert tables["filter"].nbytes <= 16 * 1024
    assert TABLES.itemsize <= 512 * 1024
