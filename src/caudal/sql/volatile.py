"""Words of SQL that may make a query answer otherwise the next time, over the same rows.

A text is only searched for words, without parsing it: a column of that name counts too. Nothing is
lost by that but an answer that could have been given from what is stored.
"""

import re
from collections.abc import Iterable

WORDS = (
    *("now", "today", "age", "transaction_timestamp", "get_current_timestamp", "get_current_time"),
    *("current_timestamp", "current_date", "current_time", "current_localtime"),
    *("current_localtimestamp", "localtime", "localtimestamp"),
    *("random", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "tablesample", "sample"),
    *("setseed", "nextval", "currval"),
)
_FOUND = re.compile(rf"\b({'|'.join(WORDS)})\b", re.IGNORECASE)


def may_vary(texts: Iterable[str]) -> bool:
    """Return whether one of these texts of SQL may give other rows when it is asked again.

    >>> may_vary(["SELECT count(*) FROM t"]), may_vary(["SELECT NOW()"])
    (False, True)
    """
    return any(_FOUND.search(text) for text in texts)
