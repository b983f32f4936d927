"""The functions that Caudal adds to SQL, registered on a DuckDB connection.

- `sentiment(text) -> DOUBLE`: polarity in [-1, 1]; 0.0 for null or empty text.
- `names(text) -> VARCHAR[]`: the `name` values of a Python-literal list of dicts.
- `items(text) -> VARCHAR[]`: the strings of a Python-literal list.
- `to_integer(text) -> BIGINT`: null unless the text is a whole number (TRY_CAST takes '1.5' for 2).
- `number_text(text) -> VARCHAR`: the text, null where it holds an underscore (TRY_CAST takes
  '1_000' for 1000).
- `exact_integer(text) -> BIGINT`, `exact_decimal(text) -> DECIMAL(38, 9)`, `exact_double(text)`,
  `exact_timestamp(text)`, `exact_timestamptz(text)`: null unless the value says all that the text
  says. So '007' is no number, a decimal has at most nine places, a double at most 17 digits, a
  moment at most microseconds; a text with an offset from UTC is a TIMESTAMPTZ, one without it a
  TIMESTAMP.
"""

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

from caudal.kernels.sentiment import SentimentModel

RETURN_TYPES = {
    "sentiment": "DOUBLE",
    "names": "VARCHAR[]",
    "items": "VARCHAR[]",
    "to_integer": "BIGINT",
    "number_text": "VARCHAR",
    "exact_integer": "BIGINT",
    "exact_decimal": "DECIMAL(38,9)",
    "exact_double": "DOUBLE",
    "exact_timestamp": "TIMESTAMP",
    "exact_timestamptz": "TIMESTAMP WITH TIME ZONE",
}

# The first branch is the common case and costs no regular expression.
_TO_INTEGER = """
CREATE OR REPLACE MACRO to_integer(text) AS CASE
    WHEN CAST(TRY_CAST(text AS BIGINT) AS VARCHAR) = text THEN TRY_CAST(text AS BIGINT)
    WHEN regexp_full_match(trim(text), '[+-]?[0-9]+') THEN TRY_CAST(text AS BIGINT)
END
"""


_NUMBER_TEXT = """
CREATE OR REPLACE MACRO number_text(text) AS CASE WHEN NOT contains(text, '_') THEN text END
"""

_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6}0*)?)?"
_EXACT = rf"""
CREATE OR REPLACE MACRO exact_integer(text) AS CASE
    WHEN CAST(TRY_CAST(text AS BIGINT) AS VARCHAR) = text THEN TRY_CAST(text AS BIGINT)
    WHEN regexp_full_match(trim(text), '[+-]?(0|[1-9][0-9]*)') THEN TRY_CAST(text AS BIGINT)
END;
CREATE OR REPLACE MACRO exact_decimal(text) AS CASE
    WHEN regexp_full_match(trim(text), '[+-]?(0|[1-9][0-9]*)?(\.[0-9]{{0,9}}0*)?')
    THEN TRY_CAST(text AS DECIMAL(38, 9))
END;
CREATE OR REPLACE MACRO exact_double(text) AS CASE
    WHEN regexp_full_match(trim(text), '[+-]?(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][+-]?[0-9]+)?')
    AND length(trim(regexp_replace(regexp_extract(text, '[0-9.]+'), '\.', ''), '0')) <= 17
    AND isfinite(TRY_CAST(text AS DOUBLE))
    AND (TRY_CAST(text AS DOUBLE) <> 0 OR NOT regexp_matches(text, '^[^eE]*[1-9]'))
    THEN TRY_CAST(text AS DOUBLE)
END;
CREATE OR REPLACE MACRO exact_timestamp(text) AS CASE
    WHEN regexp_full_match(text, '{_DAY}({_TIME})?') THEN TRY_CAST(text AS TIMESTAMP)
END;
CREATE OR REPLACE MACRO exact_timestamptz(text) AS CASE
    WHEN regexp_full_match(text, '{_DAY}{_TIME}(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)')
    THEN TRY_CAST(text AS TIMESTAMPTZ)
END;
"""


def register_functions(connection: duckdb.DuckDBPyConnection, model: SentimentModel) -> None:
    """Register Caudal's functions for every cursor of this connection."""

    def sentiment(texts: Any) -> Any:
        return pa.array(np.asarray(model.score(texts), dtype=np.float64))

    for name, function in (("sentiment", sentiment), ("names", _names), ("items", _items)):
        connection.create_function(
            name,
            function,
            ["VARCHAR"],
            RETURN_TYPES[name],
            type=PythonUDFType.ARROW,
            null_handling=FunctionNullHandling.SPECIAL,
        )
    connection.execute(_TO_INTEGER)
    connection.execute(_NUMBER_TEXT)
    connection.execute(_EXACT)


def _names(texts: Any) -> Any:
    from caudal.kernels import literals  # loaded when it is first called

    return literals.names(texts)


def _items(texts: Any) -> Any:
    from caudal.kernels import literals

    return literals.items(texts)
