// SELECTs over the tables of `caudal ui`: editor, parameters, history, plan, rows and chart.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { download, get, said, send } from "./api.ts";
import { ChartView } from "./chart.tsx";
import type { Editor } from "./editor.ts";
import { Grid } from "./grid.tsx";
import type { Column, PlanGraph, Row, RowSource } from "./kinds.ts";
import { Plan } from "./plan.tsx";
import { choose, option } from "./route.ts";
import { count, seconds } from "./words.ts";

export interface Tables {
  application: string;
  title: string;
  tables: Record<string, Record<string, string>>;
  parameters: Record<string, string>;
  versions: Version[];
}
export interface Version {
  number: number;
  time: number; // milliseconds
  kind: string;
  load: string;
  rows: number;
  files: number;
  bytes: number;
  rejected: number;
}
export interface Answer {
  id: number;
  rows: number;
  bytes: number;
  seconds: number;
  columns: Column[];
  cut: boolean;
  rejects: string[];
}

const HISTORY = "caudal-history";
const MOST_HISTORY = 50;
const FORMS: [string, string, string][] = [
  ["CSV", "text/csv", "csv"],
  ["Parquet", "application/vnd.apache.parquet", "parquet"],
  ["Arrow", "application/vnd.apache.arrow.stream", "arrow"],
];

/** The parameters that a SELECT names, outside of texts and comments. */
export function parametersOf(sql: string): string[] {
  const bare = sql.replace(/'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\//g, " ");
  return [...new Set([...bare.matchAll(/\$([A-Za-z_]\w*)/g)].map((one) => one[1] as string))];
}

/** A parameter as typed: a number if it looks like one, else a text. */
export function typedValue(text: string): string | number {
  return /^-?\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : text;
}

export function remembered(history: string[], sql: string): string[] {
  return [sql, ...history.filter((one) => one !== sql)].slice(0, MOST_HISTORY);
}

function readHistory(): string[] {
  try {
    const found = JSON.parse(localStorage.getItem(HISTORY) ?? "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}

/** The rows of a kept answer. */
export function sourceOf(answer: Answer, query = "answer"): RowSource {
  const { rows, bytes, columns } = answer;
  return {
    about: { query, title: "", rows, bytes, columns },
    rows: (offset, limit) => get<Row[]>(`/ui/answers/${answer.id}?offset=${offset}&limit=${limit}`),
  };
}

export function SqlPage() {
  const [tables, setTables] = useState<Tables | null>(null);
  const [why, setWhy] = useState("");
  const [busy, setBusy] = useState(false);
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [plan, setPlan] = useState<PlanGraph | null>(null);
  const [history, setHistory] = useState(readHistory);
  const [text, setText] = useState(() => history[0] ?? "");
  const [values, setValues] = useState<Record<string, string>>({});
  const place = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);
  const act = useRef<() => void>(() => {});
  useEffect(() => {
    get<Tables>("/ui").then(setTables, (error) => setWhy(said(error)));
  }, []);
  useEffect(() => {
    if (!tables || !place.current) return;
    let gone = false;
    const names = Object.fromEntries(
      Object.entries(tables.tables).map(([name, columns]) => [name, Object.keys(columns)]),
    );
    const first = Object.keys(tables.tables)[0];
    const start = text || (first ? `SELECT * FROM ${first} LIMIT 100` : "SELECT 1");
    import("./editor.ts").then(({ open }) => {
      if (gone || !place.current) return;
      editor.current = open(place.current, start, names, () => act.current(), setText);
      setText(start);
    });
    return () => {
      gone = true;
      editor.current?.destroy();
    };
  }, [tables]);
  const wanted = parametersOf(text);
  const body = () => ({
    sql: text,
    parameters: Object.fromEntries(
      wanted
        .map((name) => [name, values[name] ?? tables?.parameters[name] ?? ""] as const)
        .filter(([, value]) => value !== "")
        .map(([name, value]) => [name, typedValue(value)]),
    ),
  });
  const run = async () => {
    setBusy(true);
    setWhy("");
    try {
      const given = body();
      setAnswer(await send<Answer>("POST", "/ui/sql", given));
      const next = remembered(history, given.sql);
      setHistory(next);
      localStorage.setItem(HISTORY, JSON.stringify(next));
      send<PlanGraph>("POST", "/ui/explain", given).then(setPlan, () => setPlan(null));
    } catch (error) {
      setAnswer(null);
      setWhy(said(error));
    } finally {
      setBusy(false);
    }
  };
  act.current = run;
  const source = useMemo(() => answer && sourceOf(answer), [answer]);
  const as = option("as", "rows");
  if (!tables) return why ? <p class="notice bad">{why}</p> : <p class="dim">reading…</p>;
  return (
    <>
      <div class="row">
        <h1>SQL</h1>
        <span class="dim" dir="auto">
          {tables.application} {tables.title && `· ${tables.title}`}
        </span>
      </div>
      <div class="sqlpage">
        <section class="card" aria-label="statement">
          <div class="editor" ref={place} />
          <div class="row" style={{ marginTop: ".7rem" }}>
            <button type="button" class="main" disabled={busy} onClick={run}>
              {busy ? "runs…" : "run"}
            </button>
            <span class="dim small">Ctrl+Enter</span>
            {wanted.map((name) => (
              <label class="field" key={name}>
                ${name}
                <input
                  value={values[name] ?? tables.parameters[name] ?? ""}
                  onInput={(event) => setValues({ ...values, [name]: event.currentTarget.value })}
                />
              </label>
            ))}
            <span class="grow" />
            <label class="field">
              history
              <select
                style={{ width: "14rem" }}
                value=""
                onChange={(event) => {
                  const chosen = history[Number(event.currentTarget.value)];
                  if (chosen !== undefined) editor.current?.set(chosen);
                }}
              >
                <option value="">
                  {history.length} {history.length === 1 ? "statement" : "statements"}
                </option>
                {history.map((one, number) => (
                  <option key={one} value={number}>
                    {one.slice(0, 80)}
                  </option>
                ))}
              </select>
            </label>
          </div>
          {why && (
            <pre class="notice bad" role="alert" style={{ marginTop: ".7rem" }}>
              {why}
            </pre>
          )}
        </section>
        <section class="card" aria-label="tables">
          <h2>Tables</h2>
          {Object.entries(tables.tables).map(([name, columns]) => (
            <details key={name}>
              <summary>{name}</summary>
              <dl class="small" style={{ margin: ".2rem 0 .6rem 1rem" }}>
                {Object.entries(columns).map(([column, type]) => (
                  <div key={column} class="row" style={{ gap: ".5rem" }}>
                    <dt>{column}</dt>
                    <dd class="dim" style={{ margin: 0 }}>
                      {type.toLowerCase()}
                    </dd>
                  </div>
                ))}
              </dl>
            </details>
          ))}
        </section>
      </div>
      {answer && source && (
        <section class="card" aria-label="answer">
          <div class="row" style={{ marginBottom: ".7rem" }}>
            <h2 style={{ margin: 0 }}>Answer</h2>
            <span class="dim">
              in {seconds(answer.seconds)}
              {answer.cut ? `, cut after ${count(answer.rows)} rows` : ""}
            </span>
            <span class="grow" />
            {["rows", "chart"].map((one) => (
              <button
                type="button"
                key={one}
                aria-pressed={as === one}
                onClick={() => choose("as", one)}
              >
                {one}
              </button>
            ))}
            {FORMS.map(([name, accept, ending]) => (
              <button
                type="button"
                key={name}
                onClick={() =>
                  download(`/ui/answers/${answer.id}`, accept, `answer.${ending}`).catch((error) =>
                    setWhy(said(error)),
                  )
                }
              >
                {name}
              </button>
            ))}
          </div>
          {answer.rejects.length > 0 && (
            <details class="small">
              <summary>rejected rows</summary>
              <pre>{answer.rejects.join("\n")}</pre>
            </details>
          )}
          {as === "chart" ? (
            <ChartView source={source} />
          ) : (
            <Grid key={answer.id} source={source} />
          )}
        </section>
      )}
      {answer && plan && (
        <section class="card" aria-label="plan">
          <h2>Plan</h2>
          <Plan graph={plan} tasks={[]} busy={new Set()} />
        </section>
      )}
    </>
  );
}
