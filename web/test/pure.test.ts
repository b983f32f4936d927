// Decisions of the page that need no browser.
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { bins, choose, chosenChart } from "../src/charts.ts";
import { filled } from "../src/filling.ts";
import type { JobEntry, Process, Row, Sample, SoFar, Status, Task } from "../src/kinds.ts";
import { parseRoute, written } from "../src/route.ts";
import { parse } from "../src/sse.ts";
import { bytes, moment, seconds, shown } from "../src/words.ts";

const { arranged, compare } = await import("../src/grid.tsx");
const { filtered, progress, rowsPerSecond } = await import("../src/jobs.tsx");
const { cpuOf, healed, terms } = await import("../src/cluster.tsx");
const { batches, newer } = await import("../src/growing.tsx");
const { settled } = await import("../src/live.tsx");
const { placesOf } = await import("../src/job.tsx");
const { look, marks, tick } = await import("../src/timeline.tsx");
const { inSight } = await import("../src/virtual.tsx");
const { sums } = await import("../src/plan.tsx");
const { binsSelect, countsSelect, isNumeric, percent, profileOf, spans } = await import(
  "../src/profile.ts"
);
const { mistakeAt, parametersOf, remembered, typedValue } = await import("../src/sql.tsx");
const { ApiError, inTurn } = await import("../src/api.ts");
const { isComplete, load, nextPart, passes, patiently } = await import("../src/loading.ts");
const { tableFor, told } = await import("../src/drop.tsx");
const { lackOf } = await import("../src/new_dataset.tsx");
const { byYear, compared, csvOf } = await import("../src/series.tsx");
const { bare, CANCEL, datasetPath, ended, whoseOf } = await import("../src/places.ts");

test("events are split where they end, and the rest waits", () => {
  const { events, rest } = parse(': alive\n\nid: 3\nevent: rows\ndata: {"a":1}\n\nevent: pro');
  assert.deepEqual(events, [{ name: "rows", data: '{"a":1}', id: "3" }]);
  assert.equal(rest, "event: pro");
});

test("an address and its options survive being written", () => {
  const route = parseRoute("#/jobs/a%20b?query=q1&as=chart");
  assert.deepEqual(route.parts, ["jobs", "a b"]);
  assert.equal(written(route), "#/jobs/a%20b?query=q1&as=chart");
  assert.deepEqual(parseRoute("").parts, ["jobs"]);
});

test("an address that is no text shows the list", () => {
  for (const wrong of ["#/jobs/%", "#/datasets/%E0%A4", "#/%zz?query=q1"])
    assert.deepEqual(parseRoute(wrong).parts, ["jobs"]);
});

test("a chart is chosen by the types of the columns", () => {
  const text = { name: "title", type: "string" };
  const number = { name: "n", type: "int64" };
  assert.equal(choose([text, number])?.kind, "bar");
  assert.equal(choose([{ name: "decade", type: "int64" }, number])?.kind, "line");
  assert.equal(choose([{ name: "at", type: "timestamp[us]" }, number])?.kind, "line");
  assert.equal(choose([number])?.kind, "histogram");
  assert.equal(choose([text]), null);
});

test("bins count every value once", () => {
  const found = bins([1, 1, 2, 10]);
  assert.equal(
    found.reduce((sum, one) => sum + one.count, 0),
    4,
  );
  assert.equal(bins([7, 7]).length, 1);
  assert.deepEqual(bins([]), []);
});

test("rows are sorted by value, nulls last, and filtered by any column", () => {
  const rows: Row[] = [{ a: 10 }, { a: null }, { a: 9 }];
  assert.deepEqual(
    arranged(rows, "", "a", false).map((row) => row.a),
    [9, 10, null],
  );
  assert.equal(arranged([{ a: "Öl" }, { a: "x" }], "öl", "", false).length, 1);
  assert.ok(compare("b10", "b9") > 0);
});

test("a million rows fit an element, and every row can be reached", () => {
  const all = 1_000_000;
  assert.equal(inSight(all, 0, 500).first, 0);
  const whole = 15_000_000;
  const end = inSight(all, whole - 500, 500);
  assert.equal(end.last, all);
  assert.ok(end.last - end.first < 60);
  assert.equal(inSight(3, 0, 500).last, 3);
});

const job = (id: string, state: string, created: number, failed: string[] = []) =>
  ({ id, state, created, failed, application: "books" }) as JobEntry;

test("jobs are filtered, newest or errors first", () => {
  const jobs = [job("a", "done", 1), job("b", "failed", 2), job("c", "done", 3, ["q1"])];
  const ids = (found: JobEntry[]) => found.map((one) => one.id).join("");
  assert.equal(ids(filtered(jobs, "", "", "")), "cba");
  assert.equal(ids(filtered(jobs, "", "", "errors")), "cba");
  assert.equal(ids(filtered([...jobs, job("d", "done", 9)], "", "", "errors")), "cbda");
  assert.equal(ids(filtered(jobs, "errors", "", "")), "cb");
  assert.equal(ids(filtered(jobs, "", "A", "")), "a");
});

test("progress never passes one and ends there", () => {
  const status = {
    outcome: null,
    tables: { t: { batches: 4, arrived: 4, mapped: 4 } },
    folds: { f: [2, 4] },
    queries: ["q"],
    results: [],
  } as unknown as Status;
  assert.ok(Math.abs(progress(status) - 0.8) < 1e-9);
  assert.equal(progress({ ...status, outcome: { state: "done" } } as Status), 1);
});

const task = (more: Partial<Task>): Task => ({
  kind: "map",
  name: "t",
  number: 0,
  worker: "w",
  began: 0,
  ended: 1,
  end: "done",
  ...more,
});

test("rows and bytes are added up by stage", () => {
  const found = sums([task({ stages: { s: [2, 10] } }), task({ stages: { s: [3, 5] } })]);
  assert.deepEqual(found.get("s"), { rows: 5, bytes: 15, tasks: 2, seconds: 2 });
  assert.equal(rowsPerSecond([task({ stages: { s: [10, 1], r: [4, 1] } })]), 10);
  assert.equal(rowsPerSecond([]), null);
});

test("retries and adopted work look different", () => {
  assert.equal(look(task({})), "map");
  assert.equal(look(task({ deliveries: 2 })), "retry");
  assert.equal(look(task({ end: "adopted" })), "adopted");
  assert.equal(tick(0.3), 0.5);
});

const sample = (at: number, incarnation: number, state = "healthy", cpu = 0): Sample => ({
  at,
  leader: "m",
  term: incarnation,
  processes: [{ name: "w", state, incarnation, cpu }],
});

test("deaths, restarts, terms and CPU come from samples", () => {
  const samples = [sample(0, 1), sample(5, 1, "dead"), sample(10, 2)];
  assert.deepEqual(
    marks(samples, new Set(["w"])).map((one) => one.at),
    [5, 10],
  );
  assert.deepEqual(
    terms(samples).map((one) => one.term),
    [1, 2],
  );
  assert.deepEqual(cpuOf([sample(0, 1, "", 1), sample(2, 1, "", 2), sample(4, 2, "", 0)], "w"), [
    null,
    0.5,
    null,
  ]);
});

test("a strike is healed by a newer incarnation only", () => {
  const strike = { process: "w", incarnation: 1, fault: "kill" as const, at: 10, healed: null };
  const process = { name: "w", state: "healthy", incarnation: 1 } as Process;
  assert.equal(healed([strike], [process], 12)[0]?.healed, null);
  assert.equal(healed([strike], [{ ...process, incarnation: 2 }], 12)[0]?.healed, 2);
});

test("facts are read again for ten seconds", () => {
  assert.equal(settled("1700000020000-x", ""), "1700000010000");
  assert.equal(settled("1700000020000-x", "1700000015000"), "1700000015000");
});

test("data cannot end the script that holds it", () => {
  const text = filled("<script>/*data*/</script>", { title: "</script><b>$&" });
  assert.equal(text, '<script>{"title":"\\u003c/script>\\u003cb>$&"}</script>');
});

test("numbers are written for people", () => {
  assert.equal(bytes(999), "999 B");
  assert.equal(bytes(1_234_567), "1.2 MB");
  assert.equal(seconds(75), "1 min 15 s");
  assert.equal(shown(0.1 + 0.2), "0.3");
  assert.equal(shown(null), "NULL");
  assert.equal(shown([1, "a"]), '[1,"a"]');
});

test("parameters are found outside of texts, names and comments", () => {
  assert.deepEqual(parametersOf("SELECT $a, '$b', \"$c\" -- $d\n/* $e */ + $a + $f"), ["a", "f"]);
  assert.equal(typedValue(" 12.5"), 12.5);
  assert.equal(typedValue("1e5x"), "1e5x");
});

test("the history holds each statement once, the newest first", () => {
  assert.deepEqual(remembered(["b", "a"], "a"), ["a", "b"]);
});

test("a share is never rounded to none or to all", () => {
  assert.equal(percent(1, 100_000), "< 0.1 %");
  assert.equal(percent(99_999, 100_000), "> 99.9 %");
  assert.equal(percent(0, 5), "0 %");
  assert.equal(percent(5, 5), "100 %");
});

test("rows so far are never replaced by fewer of the same run", () => {
  const look = (run: string, many: number, rows: Row[] | null) =>
    ({ run, covered: { a: many, b: 1 }, total: 1, columns: [], later: [], rows }) as SoFar;
  const known = look("r", 3, [{ x: 1 }]);
  assert.equal(batches(known), 4);
  assert.equal(newer(known, look("r", 2, [])), known);
  assert.equal(newer(known, look("r", 3, null)), known);
  assert.equal(newer(known, look("r", 4, []))?.covered.a, 4);
  assert.equal(newer(known, look("s", 1, []))?.run, "s");
  assert.equal(newer(known, look("s", 1, null)), null);
});

test("the place of a mistake is read from the message", () => {
  const message = "no column\n  line 2: SELECT nothing, a\n                 ^^^^^^^";
  assert.deepEqual(mistakeAt(message), { line: 2, from: 7, to: 14 });
  assert.equal(mistakeAt("something else"), null);
});

test("a page asks the gateway that answered last, then its own, then the others", () => {
  const told = ["http://a:1", "http://b:2", "http://c:3"];
  assert.deepEqual(inTurn("", "http://a:1", told), ["", "http://b:2", "http://c:3"]);
  assert.deepEqual(inTurn("http://c:3", "http://a:1", told), ["http://c:3", "", "http://b:2"]);
  assert.deepEqual(inTurn("", "http://a:1", []), [""]);
});

test("the parts of a file follow each other", () => {
  assert.deepEqual(nextPart(10, null, 4), { header: 0, from: 0, to: 4, last: false });
  const cut = { header: 2, offset: 8, line: 3, bytes: 2, digest: "" };
  assert.deepEqual(nextPart(10, cut, 4), { header: 2, from: 8, to: 10, last: true });
  assert.equal(isComplete(10, null), false);
  assert.equal(isComplete(0, { ...cut, offset: 0 }), true);
  assert.equal(isComplete(10, cut), false);
});

/** Lets no time pass in pauses; tells how many milliseconds they would have taken. */
function pauses(test: TestContext): number[] {
  const waited: number[] = [];
  test.mock.method(globalThis, "setTimeout", ((done: () => void, milliseconds: number) => {
    waited.push(milliseconds);
    queueMicrotask(done);
  }) as typeof setTimeout);
  return waited;
}

const PASSING: [number, string, number][] = [
  [408, "too_slow", 0],
  [429, "busy", 1],
  [429, "over_quota", 10],
  [429, "rate_limited", 1],
  [503, "store_full", 2],
  [503, "unavailable", 2],
  [503, "", 0], // not from a gateway
];

test("what passes is asked again, as late as the gateway says", async (t) => {
  const waited = pauses(t);
  for (const [status, code, later] of PASSING) {
    waited.length = 0;
    const answers = [new ApiError(status, code, "not now", later), new TypeError("no network")];
    const ask = async () => {
      const error = answers.shift();
      if (error) throw error;
      return "done";
    };
    assert.equal(await patiently(ask, new AbortController().signal), "done");
    assert.deepEqual(waited, [1000 * Math.max(1, later), 1000]);
  }
});

test("patience ends after a minute, whatever the gateway says", async (t) => {
  const waited = pauses(t);
  for (const later of [0, 7, 30, 1_000_000]) {
    waited.length = 0;
    const full = new ApiError(503, "store_full", "the store is full", later);
    const asking = patiently(() => Promise.reject(full), new AbortController().signal);
    await assert.rejects(asking, full);
    assert.equal(
      waited.reduce((sum, one) => sum + one, 0),
      60_000,
    );
  }
});

test("what does not pass is told at once, and so is the end of patience by the user", async (t) => {
  const waited = pauses(t);
  const going = new AbortController();
  for (const [status, code] of [
    [400, "bad_request"],
    [409, "conflict"],
    [410, "ended"],
    [500, "bug"],
  ] as [number, string][]) {
    const error = new ApiError(status, code, "no");
    assert.equal(passes(error), false);
    await assert.rejects(
      patiently(() => Promise.reject(error), going.signal),
      error,
    );
  }
  going.abort(CANCEL);
  const busy = new ApiError(429, "busy", "not now", 1);
  await assert.rejects(
    patiently(() => Promise.reject(busy), going.signal),
    busy,
  );
  assert.deepEqual(waited, []);
});

/** A gateway that answers the requests of a load, but this to the parts of the file. */
function gatewayOfLoad(test: TestContext, toParts: (asked: string[]) => Response): string[] {
  const asked: string[] = [];
  const answers: [RegExp, unknown][] = [
    [/^POST .*offers$/, { job: "load-1", new: [0], skipped: [], version: null }],
    [/^GET \/jobs\/load-1$/, { outcome: null }],
    [/./, {}],
  ];
  test.mock.method(globalThis, "fetch", async (path: string, init: RequestInit) => {
    const one = `${init.method ?? "GET"} ${path}`;
    asked.push(one);
    if (one.includes("/records/")) return toParts(asked);
    return Response.json(answers.find(([form]) => form.test(one))?.[1]);
  });
  return asked;
}

const refused = (status: number, code: string, headers: Record<string, string> = {}) =>
  Response.json({ error: { code, message: "no" } }, { status, headers });

const TEXT = { name: "a", title: "", tables: [], queries: [], parameters: {}, sentiment: "" };

const loading = (stop = new AbortController()) =>
  load(new File(["a\n1\n"], "a.csv"), "shelf", "t", TEXT, () => {}, stop.signal);

test("a load is not given up for what passes: the same file goes on with the same job", async (t) => {
  for (const [status, code, later] of PASSING) {
    const waited = pauses(t);
    const asked = gatewayOfLoad(t, () => refused(status, code, { "retry-after": `${later}` }));
    await assert.rejects(
      loading(),
      (error) => error instanceof ApiError && error.status === status,
    );
    assert.equal(waited[0], 1000 * Math.max(1, later));
    assert.deepEqual(
      asked.filter((one) => one.startsWith("DELETE")),
      [],
    );
    t.mock.restoreAll();
  }
});

test("a load is cancelled when it will never be accepted, or by the user", async (t) => {
  const wrong = gatewayOfLoad(t, () => refused(400, "bad_request"));
  await assert.rejects(loading());
  assert.equal(wrong.at(-1), "DELETE /jobs/load-1");
  t.mock.restoreAll();
  const stop = new AbortController();
  const stopped = gatewayOfLoad(t, () => {
    stop.abort(CANCEL);
    return refused(503, "store_full");
  });
  await assert.rejects(loading(stop));
  assert.equal(stopped.at(-1), "DELETE /jobs/load-1");
});

test("a stream that ends without an outcome is opened again after a pause", async (t) => {
  const waited = pauses(t);
  const streams = ["", ": alive\n\n", 'event: outcome\ndata: {"state":"done"}\n\n'];
  t.mock.method(globalThis, "fetch", async () => new Response(streams.shift()));
  const outcome = await ended("j", new AbortController().signal);
  assert.equal(outcome.state, "done");
  assert.deepEqual(waited, [500, 500]);
});

test("a file is for the table whose columns it has, else for the one in its name", () => {
  const bare = ["books", "reviews"].map((name) => ({ name, columns: [] }));
  assert.equal(tableFor("Reviews-november.csv", "", bare), "reviews");
  assert.equal(tableFor("x.csv", "", bare), "books");
  const books = { name: "books", columns: ["Title", "authors"] };
  const reviews = { name: "reviews", columns: ["Title", "review/score"] };
  const line = 'Id,Title,"review/score"';
  assert.equal(tableFor("Books_rating.csv", line, [books, reviews]), "reviews");
  assert.equal(tableFor("books_data.csv", "Title,authors", [books, reviews]), "books");
  assert.equal(tableFor("Reviews.csv", "other", [books, reviews]), "reviews");
});

test("a series is saved as it is drawn", () => {
  const newest = { label: "newest", colour: "", values: [1.5, null] };
  const text = csvOf({ times: [0, 86_400] }, [newest, { ...newest, label: "version 1" }]);
  assert.equal(text, "date,newest,version 1\n1970-01-01,1.5,1.5\n1970-01-02,,\n");
});

test("a moment is one of this place's clock, the day too", () => {
  const at = new Date(2026, 0, 5, 23, 59, 58).getTime() / 1000;
  assert.equal(moment(at), "2026-01-05 23:59:58");
});

test("the address names a chart, where the answer has its columns", () => {
  const columns = [
    { name: "title", type: "string" },
    { name: "year", type: "int32" },
    { name: "score", type: "double" },
  ];
  const first = choose(columns);
  assert.deepEqual(chosenChart(columns, "", "", ""), first);
  const bar = { kind: "bar", x: "title", y: "year" };
  assert.deepEqual(chosenChart(columns, "bar", "title", "year"), bar);
  assert.deepEqual(chosenChart(columns, "pie", "nothing", "title"), first);
  assert.equal(chosenChart(columns.slice(0, 1), "bar", "title", "year"), null);
});

test("the name of a new dataset is checked, and what it is told to lack", () => {
  assert.equal(lackOf("my-shelf_2.old"), "");
  assert.match(lackOf(""), /needs a name/);
  for (const wrong of ["..", ".a", "a b", "a/b", "x".repeat(65)]) assert.match(lackOf(wrong), /64/);
});

test("what a load did is told", () => {
  const loaded = { version: 3, rows: 1, rejected: 2, skipped: "" };
  assert.equal(told(loaded), "version 3 has 1 row of it, 2 rejected");
  assert.equal(told({ ...loaded, skipped: "why" }), "nothing to load: why");
});

test("a profile is asked by two SELECTs", () => {
  const columns = { n: "INTEGER", 'odd"': "VARCHAR", list: "INTEGER[]" };
  assert.equal(
    countsSelect("t", { n: "INTEGER" }, true),
    'SELECT count(*) AS n, count("n") AS k0, min("n") AS l0, max("n") AS m0, ' +
      'approx_count_distinct("n") AS d0 FROM "t"',
  );
  assert.match(countsSelect("t", columns, false), /min\("odd"""\) AS l1/);
  assert.ok(isNumeric("DECIMAL(9,2)") && isNumeric("UBIGINT") && isNumeric("HUGEINT"));
  assert.ok(!isNumeric("INTEGER[]") && !isNumeric("INTERVAL") && !isNumeric("VARCHAR"));
  const row = { n: 4, k0: 3, l0: 1, m0: "9", k1: 4, l1: "a", m1: "b", k2: 0, l2: null, m2: null };
  const found = spans(columns, row);
  assert.deepEqual(found, [{ place: 0, name: "n", least: 1, most: 9 }]);
  assert.match(binsSelect("t", found), /^SELECT 0 AS place, .* GROUP BY 2$/);
  const profile = profileOf(columns, row, [{ place: 0, bin: 19, n: 2 }]);
  assert.equal(profile.columns[0]?.bins[19], 2);
  assert.equal(profile.columns[0]?.nulls, 1);
  assert.equal(profile.columns[1]?.distinct, null);
});

test("months stand in their years", () => {
  const one = { month: "2024-02", state: "fresh", versions: 1 };
  const [[year, months]] = byYear([{ ...one, month: "2023-12" }, one]) as [[string, unknown[]]];
  assert.equal(year, "2024");
  assert.deepEqual(months.slice(0, 3), [null, one, null]);
});

test("two readings of a series are compared value by value", () => {
  const read = { code: "x", unit: "", known: [], notes: [] };
  const now = { ...read, times: [0, 86400, 172800], values: [1, 2, 4] };
  const then = { ...read, times: [0, 86400], values: [1, 3] };
  assert.deepEqual(compared(now, then).revisions, [
    { time: 86400, before: 3, after: 2 },
    { time: 172800, before: null, after: 4 },
  ]);
});

test("datasets of others are named with their owner", () => {
  assert.deepEqual(whoseOf("eva/shelf"), { owner: "eva", name: "shelf" });
  assert.equal(datasetPath(whoseOf("eva/shelf"), "/jobs"), "/datasets/shelf/jobs?owner=eva");
  assert.equal(datasetPath(whoseOf("shelf")), "/datasets/shelf");
  assert.equal(bare("\nSELECT 1 ;; "), "\nSELECT 1");
});

test("the first places of a reason are shown with their records, where those are known", () => {
  const places = [
    { file: "data/films.csv", line: 6, record: "x,<script>,1990" },
    { file: "films.csv", line: 7, record: null },
    { file: "films.csv", line: 8 },
    ...Array.from({ length: 9 }, (_, line) => ({ file: "f", line })),
  ];
  const found = placesOf({ table: "films", first: places } as unknown as Row);
  assert.equal(found.length, 5);
  assert.deepEqual(found.slice(0, 3), [
    { at: "films.csv:6", record: "x,<script>,1990" },
    { at: "films.csv:7", record: "" },
    { at: "films.csv:8", record: "" },
  ]);
  assert.deepEqual(placesOf({ table: "films", reason: null } as unknown as Row), []);
});
