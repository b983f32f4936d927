"""`caudal explain --format`: a plan as text, as Mermaid and as DOT."""

import pytest

from caudal.cli.main import main
from caudal.cli.status import ExitStatus

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("engine", ["embedded", "split"])
@pytest.mark.parametrize(
    ("form", "first"), [("mermaid", "flowchart TD"), ("dot", "digraph plan {")]
)
def test_a_plan_is_drawn_for_each_engine(
    engine: str, form: str, first: str, capsys: Capture
) -> None:
    assert main(["explain", "books", "q5", "--engine", engine, "--format", form]) == ExitStatus.OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == first
    assert any("Fiction in the top decile" in line for line in lines)


def test_a_picture_of_the_embedded_engine_names_what_is_read(capsys: Capture) -> None:
    assert main(["explain", "books", "q5", "--format", "mermaid"]) == ExitStatus.OK
    out = capsys.readouterr().out
    assert 'n0[("books<br/>columns Title, authors, publishedDate, categories<br/>' in out
    assert "compute sentiment(text)" in out
    assert 'n0 -.->|"keys"| n1' in out  # reviews are kept by the titles of books


def test_any_text_of_a_select_stays_within_its_label(capsys: Capture) -> None:
    select = """SELECT title AS "a""]; x", '%%{init}%%' AS b FROM books WHERE title = '</b>"'"""
    for engine in ("embedded", "split"):
        asked = ["explain", "books", select, "--engine", engine, "--format", "mermaid"]
        assert main(asked) == ExitStatus.OK
        for line in capsys.readouterr().out.splitlines():
            assert line.count('"') in (0, 2)
            assert "</b>" not in line
            assert "%" not in line


def test_sql_of_stages_is_for_text_only(capsys: Capture) -> None:
    asked = ["explain", "books", "q5", "--sql"]
    assert main([*asked, "--engine", "split"]) == ExitStatus.OK
    assert "| SELECT" in capsys.readouterr().out
    for more in ([], ["--engine", "split", "--format", "dot"]):
        assert main([*asked, *more]) == ExitStatus.USAGE
        assert "--sql is for --engine split --format text" in capsys.readouterr().err
