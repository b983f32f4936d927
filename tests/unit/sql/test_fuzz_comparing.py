"""How the fuzzer compares rows: any order, floats to their last bits but a few."""

import pyarrow as pa
import pytest
from tests.fuzz.check import DifferenceError, compare


def rows(*values: tuple[float, str]) -> pa.Table:
    return pa.table({"a": [one for one, _ in values], "b": [two for _, two in values]})


def test_last_bits_do_not_change_which_rows_belong_together() -> None:
    tie, beside = 29476.625, 29476.625000000004  # a seventh digit would round apart
    compare(rows((tie, "x"), (beside, "w")), rows((beside, "x"), (tie, "w")), ordered=False)
    nan = float("nan")
    compare(rows((nan, "x"), (0.0, "w")), rows((-0.0, "w"), (nan, "x")), ordered=False)


def test_other_values_are_a_difference() -> None:
    for other in (rows((1.0, "x")), rows((1.0, "x"), (2.0, "y")), rows((1.0, "x"), (2.1, "w"))):
        with pytest.raises(DifferenceError):
            compare(rows((1.0, "x"), (2.0, "w")), other, ordered=False)
