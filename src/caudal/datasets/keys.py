"""The keys of a dataset's objects, below the dataset's own folder.

dataset.json                              what the dataset is; created once
versions/{n:020}.json                     a version: the commit
versions/{n:020}.checkpoint               all versions up to n, derived from them
tables/T/{load}/{batch:08}.parquet        rows of a table
tables/T/_delta_log/{n:020}.json          derived from version n
tables/T/_delta_log/{n:020}.checkpoint.parquet   beside a checkpoint: the same for readers of Delta
loads/{load}/{table}-{batch:08}.json      progress of a load that has no version yet
computed/{versions}/{expression}/…        values that questions computed (computed.py)
"""

import re

from caudal.formats.loads import FILE_PATH

DATASET = "dataset.json"
VERSIONS = "versions/"
TABLES = "tables/"
LOADS = "loads/"
COMPUTED = "computed/"
REJECTS = "rejects"  # the table of rejected rows

_VERSION = re.compile(r"versions/(\d{20})\.json\Z")
_PATH = re.compile(FILE_PATH)
_CHECKPOINT = re.compile(r"versions/(\d{20})\.checkpoint\Z")


def version_key(number: int) -> str:
    return f"versions/{number:020}.json"


def checkpoint_key(number: int) -> str:
    return f"versions/{number:020}.checkpoint"


def file_key(table: str, path: str) -> str:
    """Return the key of a file, given its path as its table's Delta log has it."""
    return f"tables/{table}/{path}"


def file_path(load: str, batch: int) -> str:
    return f"{load}/{batch:08}.parquet"


def delta_key(table: str, number: int) -> str:
    return f"tables/{table}/_delta_log/{number:020}.json"


def delta_checkpoint_key(table: str, number: int) -> str:
    return f"tables/{table}/_delta_log/{number:020}.checkpoint.parquet"


def progress_folder(load: str) -> str:
    return f"loads/{load}/"


def progress_key(load: str, table: str, batch: int) -> str:
    return f"loads/{load}/{table}-{batch:08}.json"


def is_file_path(path: str) -> bool:
    """Return whether this can be the path of a file: nothing that leads out of its table."""
    return _PATH.match(path) is not None


def version_number(key: str) -> int | None:
    """Return the number of the version with this key; None for another key."""
    found = _VERSION.match(key)
    return int(found[1]) if found else None


def checkpoint_number(key: str) -> int | None:
    found = _CHECKPOINT.match(key)
    return int(found[1]) if found else None
