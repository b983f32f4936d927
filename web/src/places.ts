// Where SELECTs are asked: the tables of `caudal ui`, a dataset of the cluster, or a job's results.
import { ApiError, download, get, pause, request, save, send } from "./api.ts";
import type { About, Column, Outcome, PlanGraph, Row, RowSource, Status } from "./kinds.ts";
import { read } from "./sse.ts";

export type Parameter = string | number;
export type Columns = Record<string, string>; // types by name
export type Form = [name: string, media: string, ending: string];
export interface Select {
  name: string;
  sql: string;
}
export interface Answered {
  source: RowSource;
  seconds: number;
  cut: boolean; // whether there were more rows
  rejects: string[];
  job: string; // empty: none computed it
  forms: Form[];
  save(form: Form): Promise<void>;
}
export interface Place {
  key: string;
  title: string;
  tables: Record<string, Columns>;
  parameters: Record<string, string>; // defaults
  isLocal: boolean; // then counting distinct values is cheap
  answers(
    selects: Select[],
    values: Record<string, Parameter>,
    stop: AbortSignal,
  ): Promise<Answered[]>;
  plan(sql: string, values: Record<string, Parameter>): Promise<PlanGraph | null>;
}
export interface Text {
  name: string;
  title: string;
  tables: { name: string; files: string[]; columns: string[]; sql: string }[];
  queries: { name: string; title: string; sql: string; origin: string }[];
  parameters: Record<string, Parameter>;
  sentiment: string;
}
export interface DatasetTables {
  version: number;
  application: Text;
  tables: Record<string, Columns>;
}
export interface Whose {
  owner: string; // empty: one's own
  name: string;
}

const CSV: Form = ["CSV", "text/csv", "csv"];
const PARQUET: Form = ["Parquet", "application/vnd.apache.parquet", "parquet"];
const ARROW: Form = ["Arrow", "application/vnd.apache.arrow.stream", "arrow"];
const JSON_FORM: Form = ["JSON", "application/json", "json"];

export const bare = (sql: string) => sql.replace(/[;\s]+$/, "");
export const datasetPath = (whose: Whose, rest = "") =>
  `/datasets/${encodeURIComponent(whose.name)}${rest}${whose.owner ? `?owner=${encodeURIComponent(whose.owner)}` : ""}`;

interface UiAnswer {
  id: number;
  rows: number;
  bytes: number;
  seconds: number;
  columns: Column[];
  cut: boolean;
  rejects: string[];
}

/** The tables of `caudal ui`. */
export function localPlace(
  title: string,
  tables: Record<string, Columns>,
  parameters: Record<string, string>,
): Place {
  const one = async ({ name, sql }: Select, values: Record<string, Parameter>, stop: AbortSignal) =>
    uiAnswered(name, await send<UiAnswer>("POST", "/ui/sql", { sql, parameters: values }, stop));
  return {
    key: "",
    title,
    tables,
    parameters,
    isLocal: true,
    answers: async (selects, values, stop) => {
      const found: Answered[] = [];
      for (const select of selects) found.push(await one(select, values, stop));
      return found;
    },
    plan: (sql, values) =>
      send<PlanGraph>("POST", "/ui/explain", { sql, parameters: values }).catch(() => null),
  };
}

function uiAnswered(name: string, answer: UiAnswer): Answered {
  const { id, rows, bytes, columns, seconds, cut, rejects } = answer;
  const path = `/ui/answers/${id}`;
  return {
    source: {
      about: { query: name, title: "", rows, bytes, columns },
      rows: (offset, limit) => get<Row[]>(`${path}?offset=${offset}&limit=${limit}`),
    },
    seconds,
    cut,
    rejects,
    job: "",
    forms: [CSV, PARQUET, ARROW],
    save: ([, media, ending]) => download(path, media, `answer.${ending}`),
  };
}

/** A dataset of the cluster: every set of SELECTs is one job. Equal ones are answered once. */
export function datasetPlace(whose: Whose, held: DatasetTables, version: number | null): Place {
  let last = { sql: "", job: "" };
  const ask = async (selects: Select[], values: Record<string, Parameter>) => {
    const queries = selects.map(({ name, sql }) => ({
      name,
      title: "",
      sql: bare(sql),
      origin: "the query",
    }));
    const application = { ...held.application, queries, parameters: values };
    const body = {
      request: { application, options: { partitions: 4 } },
      version,
      once: crypto.getRandomValues(new Uint32Array(4)).join("-"),
    };
    return send<{ job: string }>("POST", datasetPath(whose, "/jobs"), body);
  };
  return {
    key: `dataset:${whose.owner ? `${whose.owner}/` : ""}${whose.name}`,
    title: `${whose.name} · version ${version ?? held.version}`,
    tables: held.tables,
    parameters: {},
    isLocal: false,
    answers: async (selects, values, stop) => {
      const began = performance.now();
      const { job } = await ask(selects, values);
      last = { sql: selects[0]?.sql ?? "", job };
      const outcome = await ended(job, stop);
      const failed = outcome.failed[selects[0]?.name ?? ""];
      if (outcome.state !== "done" || failed)
        throw new ApiError(
          422,
          "query_failed",
          failed ?? `the job ${outcome.state}: ${outcome.reason}`,
        );
      const seconds = (performance.now() - began) / 1000;
      return Promise.all(selects.map(({ name }) => jobAnswered(job, name, seconds)));
    },
    plan: async (sql) => {
      if (last.sql !== sql) return null;
      const found = await get<{ queries: Record<string, PlanGraph> }>(`/jobs/${last.job}/plan`);
      return Object.values(found.queries)[0] ?? null;
    },
  };
}

export const CANCEL = "cancel";

/** Waits for the end of a job. If the wait is stopped with CANCEL, the job is cancelled. */
export async function ended(
  job: string,
  stop: AbortSignal,
  onStatus: (status: Status) => void = () => {},
): Promise<Outcome> {
  let outcome: Outcome | null = null;
  while (!outcome) {
    try {
      await read(
        `/jobs/${job}/events`,
        (event) => {
          if (event.name === "outcome") outcome = JSON.parse(event.data) as Outcome;
          if (event.name === "progress") onStatus(JSON.parse(event.data) as Status);
        },
        stop,
      );
    } catch (error) {
      if (stop.reason === CANCEL) await send("DELETE", `/jobs/${job}`).catch(() => {});
      const isLater = !(error instanceof ApiError) || error.status >= 500 || error.status === 429;
      if (stop.aborted || !isLater) throw error;
    }
    if (!outcome) await pause(500, stop); // also when the stream ended by itself
  }
  return outcome;
}

export async function jobAnswered(job: string, name: string, seconds: number): Promise<Answered> {
  const path = `/jobs/${job}/results/${name}`;
  const about = await get<About>(`${path}/about`);
  return {
    source: {
      about,
      rows: (offset, limit) => get<Row[]>(`${path}?offset=${offset}&limit=${limit}`),
    },
    seconds,
    cut: false,
    rejects: [],
    job,
    forms: [JSON_FORM, CSV, PARQUET, ARROW],
    save: ([, media, ending]) => download(path, media, `${name}.${ending}`),
  };
}

interface ResultRows {
  columns: Column[];
  rows: Row[];
  cut: boolean;
  seconds: number;
  bytes: number;
}

/** The results of a job that are there, as tables with the names of their queries. */
export async function resultsPlace(job: string): Promise<Place> {
  const status = await get<Status>(`/jobs/${job}?quiet=true`);
  const names = status.results.filter((one) => !status.failed[one]);
  const tables: Record<string, Columns> = {};
  for (const name of names) {
    const path = name === "rejects" ? null : `/jobs/${job}/results/${name}/about`;
    if (!path) continue;
    const about = await get<About>(path);
    tables[name] = Object.fromEntries(about.columns.map((one) => [one.name, one.type]));
  }
  const ask = (sql: string, parameters: Record<string, Parameter>, accept: string) =>
    request(`/jobs/${job}/sql`, {
      method: "POST",
      body: JSON.stringify({ sql, parameters }),
      headers: { "content-type": "application/json", accept },
    });
  const one = async (select: Select, values: Record<string, Parameter>): Promise<Answered> => {
    const found = (await (await ask(select.sql, values, JSON_FORM[1])).json()) as ResultRows;
    const { columns, rows, cut, seconds, bytes } = found;
    return {
      source: {
        about: { query: select.name, title: "", rows: rows.length, bytes, columns },
        rows: async (offset, limit) => rows.slice(offset, offset + limit),
      },
      seconds,
      cut,
      rejects: [],
      job: "",
      forms: [CSV, PARQUET],
      save: async ([, media, ending]) =>
        save(await (await ask(select.sql, values, media)).blob(), `answer.${ending}`),
    };
  };
  return {
    key: `job:${job}`,
    title: `results of ${job.slice(0, 12)} · ${status.application}`,
    tables,
    parameters: {},
    isLocal: true,
    answers: (selects, values) => Promise.all(selects.map((select) => one(select, values))),
    plan: async () => null,
  };
}

/** The place that the page's address names: `dataset:[OWNER/]NAME` or `job:ID`. */
export async function namedPlace(key: string): Promise<Place> {
  const [kind, rest = ""] = key.split(/:(.*)/s);
  if (kind === "job") return resultsPlace(rest);
  const whose = whoseOf(rest);
  return datasetPlace(whose, await get<DatasetTables>(datasetPath(whose, "/tables")), null);
}

export function whoseOf(text: string): Whose {
  const parts = text.split("/");
  return parts.length > 1
    ? { owner: parts[0] as string, name: parts.slice(1).join("/") }
    : { owner: "", name: text };
}
