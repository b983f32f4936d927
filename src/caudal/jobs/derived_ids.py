"""Ids of jobs that follow from what they do: of loads into datasets, and of questions to them.

So the same request finds the same job. Everything that such an id is derived from may be known to
others: a shipped application, a public file. Therefore the id also says whose it is:

    load-{digest}-{owner}     the load of an owner; 32 and 16 hexadecimal digits
    ask-{digest}-{owner}      its question

Rules
1. Nobody creates a job under an id of this form that is another owner's. The refusal is the same
   whether there is such a job or not.
2. All other ids are free: who comes first has it.
"""

import hashlib
import re
from typing import Literal

from caudal.errors import UsageError
from caudal.formats.digest import digest

_FORM = re.compile(r"(?:load|ask)-[0-9a-f]{32}-([0-9a-f]{16})\Z")


def derived_id(kind: Literal["load", "ask"], owner: str, content: bytes) -> str:
    """Return the id of the job of an owner that does this."""
    return f"{kind}-{digest(content)}-{_tag(owner)}"


def check_whose(job_id: str, owner: str) -> None:
    """Raise UsageError if only another owner may create a job under this id (rule 1)."""
    found = _FORM.match(job_id)
    if found is not None and found[1] != _tag(owner):
        raise UsageError(f"{job_id} belongs to another owner's load or question: choose another id")


def _tag(owner: str) -> str:
    return hashlib.sha256(owner.encode()).hexdigest()[:16]
