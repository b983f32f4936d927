from tests.harness.waiting import until


def test_nothing_empty_is_an_answer() -> None:
    answers: list[object] = ["an answer", [], "", 0, False, None]
    assert until(answers.pop) == "an answer"
