"""Every operation of the API. docs/formats/http.md describes them in prose."""

from typing import Any

from caudal.formats.job import Request
from caudal.formats.outcomes import End, Outcome
from caudal.formats.replies import (
    ClusterPage,
    JobPage,
    JobStatus,
    PlanPage,
    Question,
    QuotaPage,
    ResultAbout,
    SamplePage,
    SoFar,
    StrikeReceipt,
    StrikeRequest,
    TaskPage,
)
from caudal.formats.tokens import Right
from caudal.gateway import accept_header
from caudal.gateway.bodies import JSON
from caudal.gateway.dataset_routes import DATASET_OPERATIONS
from caudal.gateway.handlers import (
    cluster,
    dataset_questions,
    facts,
    health,
    jobs,
    page,
    quotas,
    records,
    result_sql,
    results,
    streams,
    tables,
)
from caudal.gateway.operations import MediaContent, Operation, Parameter, Room
from caudal.gateway.replies import AskBody, ReceiptBody

_BINARY = {"type": "string", "contentMediaType": "application/octet-stream"}
_TEXT = {"type": "string"}
_ROWS = {"type": "array", "items": {"type": "object"}}
_JOB = "/jobs/{job}"
_TABLE = f"{_JOB}/tables/{{table}}"
_BATCH = f"{_TABLE}/batches/{{number}}"
_RECORDS = f"{_TABLE}/records/{{number}}"
_RESULT = f"{_JOB}/results/{{query}}"
_DATASET = "/datasets/{dataset}"


def _json(kind: type[Any]) -> tuple[MediaContent, ...]:
    return (MediaContent(JSON, kind),)


_RECEIPT = {201: _json(ReceiptBody), 200: _json(ReceiptBody)}
_EVENTS = {200: (MediaContent(streams.EVENTS, schema=_TEXT),)}
_RESULTS = {
    200: (
        MediaContent(accept_header.ARROW, schema=_BINARY),
        MediaContent(accept_header.RESULT, schema=_BINARY),
        MediaContent(accept_header.JSON, schema=_ROWS),
        MediaContent(accept_header.CSV, schema=_TEXT),
        MediaContent(accept_header.PARQUET, schema=_BINARY),
    )
}
_LISTED = (
    Parameter(
        "after", "query", {"type": "string"}, "List the jobs behind this `next`.", required=False
    ),
    Parameter(
        "limit",
        "query",
        {"type": "integer", "minimum": 1, "maximum": 1000},
        "The most jobs to return.",
        required=False,
    ),
    Parameter(
        "owner",
        "query",
        {"type": "string", "maxLength": 64},
        "Owner of the jobs; jobs of others need the right `admin`.",
        required=False,
    ),
)
_DATASET_OWNER = Parameter(
    "owner",
    "query",
    {"type": "string", "maxLength": 64},
    "Owner of the dataset, if it is another one.",
    required=False,
)
_LAST_VERSION = Parameter(
    "Last-Event-ID",
    "header",
    {"type": "string", "pattern": "^[0-9]{1,9}$"},
    "The last version received: continue after it.",
    required=False,
)
_LAST_EVENT = Parameter(
    "Last-Event-ID",
    "header",
    {"type": "string", "pattern": "^[0-9]{1,9}$"},
    "The last batch received: continue after it.",
    required=False,
)

_QUIET = Parameter(
    "quiet",
    "query",
    {"type": "boolean"},
    "True: this is not the client, so it is no sign that the client is alive.",
    required=False,
)
_ONLY = Parameter(
    "only",
    "query",
    {"type": "boolean"},
    "True: this is the only batch of its table, which ends with it.",
    required=False,
)
_NEWS = (
    Parameter(
        "wait", "query", {"type": "number", "minimum": 0},
        "Answer when there are news, at the latest after so many seconds (at most 10).",
        required=False,
    ),
    Parameter(
        "results", "query", {"type": "integer", "minimum": 0, "maximum": 999_999_999},
        "With `wait`: the number of results that are no news.", required=False,
    ),
    Parameter(
        "small", "query", {"type": "boolean"},
        "True: return small results with the status, as result objects in base64.", required=False,
    ),
)  # fmt: skip
_WINDOW = (
    Parameter(
        "offset", "query", {"type": "integer", "minimum": 0, "maximum": 999_999_999_999},
        "The first row; only with JSON, CSV or Parquet.", required=False,
    ),
    Parameter(
        "limit", "query", {"type": "integer", "minimum": 0, "maximum": 999_999_999_999},
        "The most rows; only with JSON, CSV or Parquet.", required=False,
    ),
)  # fmt: skip
_AFTER_TASKS = Parameter(
    "after",
    "query",
    {"type": "string", "maxLength": 100, "pattern": "^[A-Za-z0-9_-]*$"},
    "The `last` of an earlier answer: return what was written since.",
    required=False,
)
_SO_FAR = (
    Parameter(
        "after", "query", {"type": "integer", "minimum": 0, "maximum": 999_999_999_999},
        "How many batches the client has rows of: return rows only if there are more.",
        required=False,
    ),
    Parameter(
        "form", "query", {"type": "string", "enum": ["rows", "stream"]},
        "Rows as JSON, or as an Arrow stream in base64.", required=False,
    ),
)  # fmt: skip
_SECONDS = Parameter(
    "seconds",
    "query",
    {"type": "integer", "minimum": 1, "maximum": 3600},
    "How far to look back.",
    required=False,
)
_PLACE = {"type": "integer", "minimum": 0, "maximum": 999_999_999_999_999}
_PART = (
    Parameter(
        "offset", "query", _PLACE,
        "Offset of the first record in the file; none: the body begins the file.", required=False,
    ),
    Parameter("line", "query", _PLACE, "Its physical line, with `offset`.", required=False),
    Parameter("source", "query", _PLACE, "Of a load: the place of its source.", required=False),
    Parameter("file", "query", {"type": "string"}, "Name of the file.", required=False),
    Parameter("last", "query", {"type": "boolean"}, "True: the file ends here.", required=False),
)  # fmt: skip
_PAGE = (
    MediaContent(page.HTML, schema=_TEXT),
    MediaContent(page.SCRIPT, schema=_TEXT),
    MediaContent(page.STYLE, schema=_TEXT),
    MediaContent(page.ICON, schema=_TEXT),
)

OPERATIONS = (
    Operation(
        "PUT", _JOB, jobs.create, "Create a job. It is safe to repeat.",
        _RECEIPT, (404, 408, 409, 413, 415, 422), MediaContent(JSON, Request), right=Right.SUBMIT,
        action="create",
    ),
    Operation(
        "GET", "/jobs", jobs.listing, "List your jobs by id.", {200: _json(JobPage)}, (),
        parameters=_LISTED,
    ),
    Operation(
        "GET", _JOB, jobs.status, "Return a job's progress and outcome.",
        {200: _json(JobStatus)}, (404,), parameters=(_QUIET, *_NEWS),
    ),
    Operation(
        "DELETE", _JOB, jobs.cancel, "Cancel a job and return its outcome.",
        {200: _json(Outcome)}, (404,), right=Right.SUBMIT, action="cancel",
    ),
    Operation(
        "DELETE", f"{_JOB}/results", jobs.delete,
        "Delete all stored data of a job that has ended.",
        {200: _json(Outcome)}, (404, 409), right=Right.SUBMIT, action="delete",
    ),
    Operation(
        "PUT", _BATCH, tables.put_batch, "Send a batch. It is safe to repeat.",
        _RECEIPT, (404, 408, 409, 410, 413, 415), MediaContent(tables.BATCH, schema=_BINARY),
        parameters=(_ONLY,), right=Right.SUBMIT,
    ),
    Operation(
        "PUT", _RECORDS, records.put_records,
        "Send the header and some records of a CSV file; the whole ones become a batch.",
        {201: _json(records.RecordsBody), 200: _json(records.RecordsBody)},
        (404, 408, 409, 410, 413, 415), MediaContent(records.CSV, schema=_TEXT),
        parameters=_PART, right=Right.SUBMIT,
    ),
    Operation(
        "GET", _BATCH, tables.stored_digest, "Return the digest of a stored batch.",
        {200: _json(tables.DigestBody)}, (404, 410),
    ),
    Operation(
        "PUT", f"{_TABLE}/end", tables.put_end, "Declare a table complete.",
        _RECEIPT, (404, 408, 409, 410, 413, 415), MediaContent(JSON, End), right=Right.SUBMIT,
    ),
    Operation(
        "GET", _RESULT, results.result, "Return the rows of a query.", _RESULTS,
        (404, 406, 410, 422), parameters=_WINDOW, action="fetch",
    ),
    Operation(
        "GET", f"{_RESULT}/about", facts.about, "Return what a result holds, without its rows.",
        {200: _json(ResultAbout)}, (404, 410, 422),
    ),
    Operation(
        "GET", f"{_JOB}/rejects", results.rejects,
        "Return the rejects report; in JSON, first places have their raw `record`.", _RESULTS,
        (404, 406, 410), parameters=_WINDOW, action="fetch",
    ),
    Operation(
        "POST", f"{_JOB}/sql", result_sql.ask, "Answer a SELECT over the results of a job.",
        {200: (
            MediaContent(JSON, result_sql.ResultRows),
            MediaContent(accept_header.CSV, schema=_TEXT),
            MediaContent(accept_header.PARQUET, schema=_BINARY),
        )},
        (404, 406, 408, 410, 413, 415, 422), MediaContent(JSON, result_sql.ResultQuestion),
        right=Right.SUBMIT, action="ask",
    ),
    Operation(
        "GET", f"{_JOB}/plan", facts.plan, "Return the plans of all queries as graphs.",
        {200: _json(PlanPage)}, (404,),
    ),
    Operation(
        "GET", f"{_JOB}/tasks", facts.tasks,
        "Return what workers did for a job, as far as it is known.",
        {200: _json(TaskPage)}, (404,), parameters=(_AFTER_TASKS,),
    ),
    Operation(
        "GET", f"{_JOB}/events", streams.job, "Stream progress, ended queries and the outcome.",
        _EVENTS, (404,), room=Room.STREAM,
    ),
    Operation(
        "GET", f"{_RESULT}/preview", streams.preview,
        "Stream the rows of a query that only filters, batch by batch.",
        _EVENTS, (404,), parameters=(_LAST_EVENT,), room=Room.STREAM, action="fetch",
    ),
    Operation(
        "GET", f"{_RESULT}/so-far", facts.so_far,
        "Return rows of an answer that still grows, in the columns that are final.",
        {200: _json(SoFar)}, (404,), parameters=_SO_FAR,
    ),
    Operation(
        "POST", f"{_DATASET}/jobs", dataset_questions.ask,
        "Ask a dataset. An equal question is answered by the same job.",
        {201: _json(AskBody), 200: _json(AskBody)}, (404, 408, 413, 415, 422),
        MediaContent(JSON, Question), parameters=(_DATASET_OWNER,), right=Right.SUBMIT,
        action="ask",
    ),
    Operation(
        "GET", f"{_DATASET}/events", dataset_questions.versions,
        "Stream the number of a dataset's newest version, and of each later one.",
        _EVENTS, (404,), parameters=(_DATASET_OWNER, _LAST_VERSION), room=Room.STREAM,
    ),
    Operation(
        "GET", "/quotas", quotas.listing,
        "Return your usage and quotas; with the right `admin`, those of all owners.",
        {200: _json(QuotaPage)},
    ),
    Operation(
        "GET", "/cluster", cluster.show, "Return all processes, lanes and services.",
        {200: _json(ClusterPage)},
    ),
    Operation(
        "GET", "/cluster/history", cluster.history,
        "Return how the processes were, as far as it is known.",
        {200: _json(SamplePage)}, parameters=(_SECONDS,),
    ),
    Operation(
        "POST", "/cluster/strikes", cluster.strike,
        "Kill or freeze a process, where cluster.toml allows chaos.",
        {200: _json(StrikeReceipt)}, (408, 409, 413, 415), MediaContent(JSON, StrikeRequest),
        right=Right.ADMIN, action="strike",
    ),
    Operation(
        "GET", "/", page.index, "Return the page.", {200: _PAGE[:1], 304: ()}, room=Room.OPEN,
    ),
    Operation(
        "GET", "/page/{file}", page.file, "Return a file of the page.",
        {200: _PAGE, 304: ()}, (404,), room=Room.OPEN,
    ),
    Operation(
        "GET", "/healthz", health.healthz, "Check that the process is alive.",
        {200: _json(health.HealthBody)}, room=Room.PROBE,
    ),
    Operation(
        "GET", "/readyz", health.readyz, "Check that the store and the broker answer.",
        {200: _json(health.HealthBody)}, (503,), room=Room.PROBE,
    ),
    Operation(
        "GET", "/metrics", health.metrics, "Return metrics for Prometheus.",
        {200: (MediaContent("text/plain", schema=_TEXT),)}, room=Room.OPEN,
    ),
    *DATASET_OPERATIONS,
)  # fmt: skip
