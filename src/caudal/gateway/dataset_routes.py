"""The operations of the API about datasets."""

from caudal.formats.dataset_replies import (
    ApplicationPage,
    DatasetEntry,
    DatasetPage,
    DatasetTables,
    PartPage,
    VersionPage,
)
from caudal.formats.job import Request
from caudal.formats.loads import LoadOffer
from caudal.formats.tokens import Right
from caudal.gateway.bodies import JSON
from caudal.gateway.handlers import datasets
from caudal.gateway.operations import MediaContent, Operation, Parameter

_DATASET = "/datasets/{dataset}"
_READER = f"{_DATASET}/readers/{{reader}}"
_OWNER = Parameter(
    "owner",
    "query",
    {"type": "string", "maxLength": 64},
    "Owner of the dataset; by default the owner of the token.",
    required=False,
)
_LAST = Parameter(
    "last",
    "query",
    {"type": "integer", "minimum": 1, "maximum": datasets.MOST_VERSIONS},
    "The most versions to return: the newest ones.",
    required=False,
)
_ENTRY = {200: (MediaContent(JSON, DatasetEntry),)}

DATASET_OPERATIONS = (
    Operation(
        "POST", f"{_DATASET}/offers", datasets.offer,
        "Offer the sources of a load; the answer names the new ones and the job that loads them.",
        {200: (MediaContent(JSON, LoadOffer),)}, (404, 408, 413, 415),
        MediaContent(JSON, Request), right=Right.SUBMIT,
    ),
    Operation(
        "GET", "/applications", datasets.applications,
        "List the applications that a new dataset can be made with, without their queries.",
        {200: (MediaContent(JSON, ApplicationPage),)},
    ),
    Operation(
        "GET", "/datasets", datasets.listing,
        "List your datasets, and those that others share with you.",
        {200: (MediaContent(JSON, DatasetPage),)}, (), parameters=(_OWNER,),
    ),
    Operation(
        "GET", _DATASET, datasets.one, "Return a dataset at its newest version.",
        _ENTRY, (404,), parameters=(_OWNER,),
    ),
    Operation(
        "GET", f"{_DATASET}/versions", datasets.versions, "List the versions of a dataset.",
        {200: (MediaContent(JSON, VersionPage),)}, (404,), parameters=(_OWNER, _LAST),
    ),
    Operation(
        "GET", f"{_DATASET}/tables", datasets.tables,
        "Return the tables of a dataset: their columns, and the SQL that cleans their rows.",
        {200: (MediaContent(JSON, DatasetTables),)}, (404,), parameters=(_OWNER,),
    ),
    Operation(
        "GET", f"{_DATASET}/parts/{{table}}", datasets.parts,
        "List the parts of streams that were loaded into a table.",
        {200: (MediaContent(JSON, PartPage),)}, (),
    ),
    Operation(
        "PUT", _READER, datasets.share, "Let another owner read a dataset.",
        _ENTRY, (404,), right=Right.SUBMIT, action="share",
    ),
    Operation(
        "DELETE", _READER, datasets.unshare, "Let another owner read a dataset no more.",
        _ENTRY, (404,), right=Right.SUBMIT, action="unshare",
    ),
    Operation(
        "DELETE", _DATASET, datasets.delete, "Delete a dataset and all its versions.",
        _ENTRY, (404,), parameters=(_OWNER,), right=Right.SUBMIT, action="delete",
    ),
)  # fmt: skip
