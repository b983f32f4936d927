"""A program that appends the rows of a CSV file to a dataset of a cluster, or to a folder:

    python -m tests.acceptance.appending APP TABLE FILE KEY (GATEWAYS NAME | FOLDER)

Killed and run again, it appends every row once.
"""

import csv
import sys
from pathlib import Path

import caudal

PATIENCE_SECONDS = 600.0


def main(app: str, table: str, file: str, key: str, *place: str) -> None:
    with Path(file).open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    if len(place) == 1:
        report = caudal.Dataset(place[0]).append(app, table, rows, key=key)
    else:
        gateways, name = place
        client = caudal.Client(gateways, patience_seconds=PATIENCE_SECONDS)
        report = client.dataset(name).append(app, table, rows, key=key)
    print(f"version {report.version}, newest {report.newest}")


if __name__ == "__main__":
    main(*sys.argv[1:])
