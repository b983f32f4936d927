// SELECTs over the tables of a place: editor, parameters, history, plan, rows and chart.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, said } from "./api.ts";
import type { Editor } from "./editor.ts";
import type { JobEntry, PlanGraph } from "./kinds.ts";
import { type Answered, CANCEL, namedPlace, type Place } from "./places.ts";
import { Plan } from "./plan.tsx";
import { quoted } from "./profile.ts";
import { choose, option } from "./route.ts";
import { ShapeButtons, Shaped } from "./shape.tsx";
import { count, seconds } from "./words.ts";

const HISTORY = "caudal-history";
const MOST_HISTORY = 50;
const MOST_JOBS = 20; // finished jobs whose results are offered

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

/** Where a message says that the mistake is: `line 2: …` above carets. Null if it does not. */
export function mistakeAt(message: string): { line: number; from: number; to: number } | null {
  const found = /^( *line (\d+): )[^\n]*\n( *)(\^+)/m.exec(message);
  if (!found) return null;
  const from = (found[3] as string).length - (found[1] as string).length;
  return from < 0 ? null : { line: Number(found[2]), from, to: from + (found[4] as string).length };
}

function readHistory(): string[] {
  try {
    const found = JSON.parse(localStorage.getItem(HISTORY) ?? "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}

function Tables({ place }: { place: Place }) {
  return (
    <section class="card" aria-label="tables">
      <h2>Tables</h2>
      {Object.entries(place.tables).map(([name, columns]) => (
        <details key={name}>
          <summary dir="auto">{name}</summary>
          <dl class="small" style={{ margin: ".2rem 0 .6rem 1rem" }}>
            {Object.entries(columns).map(([column, type]) => (
              <div key={column} class="row" style={{ gap: ".5rem" }}>
                <dt dir="auto">{column}</dt>
                <dd class="dim" style={{ margin: 0 }}>
                  {type.toLowerCase()}
                </dd>
              </div>
            ))}
          </dl>
        </details>
      ))}
    </section>
  );
}

function AnswerCard({ answer, onError }: { answer: Answered; onError: (why: string) => void }) {
  return (
    <section class="card" aria-label="answer">
      <div class="row" style={{ marginBottom: ".7rem" }}>
        <h2 style={{ margin: 0 }}>Answer</h2>
        <span class="dim">
          in {seconds(answer.seconds)}
          {answer.cut ? `, cut after ${count(answer.source.about.rows)} rows` : ""}
        </span>
        {answer.job && (
          <a class="small" href={`#/jobs/${answer.job}`}>
            its job
          </a>
        )}
        <span class="grow" />
        <ShapeButtons />
        {answer.forms.map((form) => (
          <button
            type="button"
            key={form[0]}
            onClick={() => answer.save(form).catch((error) => onError(said(error)))}
          >
            {form[0]}
          </button>
        ))}
      </div>
      {answer.rejects.length > 0 && (
        <details class="small">
          <summary>rejected rows</summary>
          <pre>{answer.rejects.join("\n")}</pre>
        </details>
      )}
      <Shaped source={answer.source} />
    </section>
  );
}

export function SqlPage({ place, over }: { place: Place; over?: ComponentChildren }) {
  const [why, setWhy] = useState("");
  const [running, setRunning] = useState<AbortController | null>(null);
  const [answer, setAnswer] = useState<Answered | null>(null);
  const [plan, setPlan] = useState<PlanGraph | null>(null);
  const [history, setHistory] = useState(readHistory);
  const [text, setText] = useState("");
  const [values, setValues] = useState<Record<string, string>>({});
  const spot = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);
  const act = useRef<() => void>(() => {});
  useEffect(() => {
    if (!spot.current) return;
    let gone = false;
    const names = Object.fromEntries(
      Object.entries(place.tables).map(([name, columns]) => [name, Object.keys(columns)]),
    );
    const first = Object.keys(place.tables)[0];
    const start =
      option("sql") ||
      (place.key ? "" : history[0]) ||
      (first
        ? `SELECT * FROM ${/^\w+$/.test(first) ? first : quoted(first)} LIMIT 100`
        : "SELECT 1");
    import("./editor.ts").then(({ open }) => {
      if (gone || !spot.current) return;
      editor.current = open(spot.current, start, names, () => act.current(), setText);
      setText(start);
    });
    return () => {
      gone = true;
      editor.current?.destroy();
    };
  }, [place]);
  const wanted = parametersOf(text);
  const given = () =>
    Object.fromEntries(
      wanted
        .map((name) => [name, values[name] ?? place.parameters[name] ?? ""] as const)
        .filter(([, value]) => value !== "")
        .map(([name, value]) => [name, typedValue(value)]),
    );
  const run = async () => {
    if (running) return;
    const stop = new AbortController();
    setRunning(stop);
    setWhy("");
    editor.current?.mark(null);
    try {
      const [found] = await place.answers([{ name: "sql", sql: text }], given(), stop.signal);
      setAnswer(found ?? null);
      const next = remembered(history, text);
      setHistory(next);
      localStorage.setItem(HISTORY, JSON.stringify(next));
      place.plan(text, given()).then(setPlan, () => setPlan(null));
    } catch (error) {
      setAnswer(null);
      setWhy(stop.signal.aborted ? "stopped" : said(error));
      editor.current?.mark(mistakeAt(said(error)));
    } finally {
      setRunning(null);
    }
  };
  act.current = run;
  return (
    <>
      <div class="row">
        <h1>SQL</h1>
        {over}
        <span class="dim" dir="auto">
          {place.title}
        </span>
      </div>
      <div class="sqlpage">
        <section class="card" aria-label="statement">
          <div class="editor" ref={spot} />
          <div class="row" style={{ marginTop: ".7rem" }}>
            <button type="button" class="main" disabled={running !== null} onClick={run}>
              {running ? "runs…" : "run"}
            </button>
            {running && (
              <button type="button" onClick={() => running.abort(CANCEL)}>
                stop
              </button>
            )}
            <span class="dim small">Ctrl+Enter</span>
            {wanted.map((name) => (
              <label class="field" key={name}>
                ${name}
                <input
                  value={values[name] ?? place.parameters[name] ?? ""}
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
        <Tables place={place} />
      </div>
      {answer && <AnswerCard key={answer.source} answer={answer} onError={setWhy} />}
      {answer && plan && (
        <section class="card" aria-label="plan">
          <h2>Plan</h2>
          <Plan graph={plan} tasks={[]} busy={new Set()} />
        </section>
      )}
    </>
  );
}

interface Choices {
  datasets: string[];
  jobs: JobEntry[];
}

/** What SELECTs may be asked over: datasets, and the newest jobs that are done. */
async function choices(): Promise<Choices> {
  const { datasets } = await get<{ datasets: { owner: string; name: string; mine?: boolean }[] }>(
    "/datasets",
  );
  const { jobs } = await get<{ jobs: JobEntry[] }>("/jobs?limit=1000");
  const done = jobs.filter((one) => one.state === "done").sort((a, b) => b.created - a.created);
  return {
    datasets: datasets.map((one) => `${one.owner}/${one.name}`),
    jobs: done.slice(0, MOST_JOBS),
  };
}

/** The SQL page of a cluster: over a dataset, or over the results of a job. */
export function ClusterSql() {
  const over = option("over");
  const [known, setKnown] = useState<Choices | null>(null);
  const [place, setPlace] = useState<Place | null>(null);
  const [why, setWhy] = useState("");
  useEffect(() => {
    choices().then(setKnown, (error) => setWhy(said(error)));
  }, []);
  const first = known?.datasets[0] ? `dataset:${known.datasets[0]}` : "";
  const chosen = over || first || (known?.jobs[0] ? `job:${known.jobs[0].id}` : "");
  useEffect(() => {
    setPlace(null);
    setWhy("");
    let gone = false;
    if (chosen)
      namedPlace(chosen).then(
        (found) => gone || setPlace(found),
        (error) => gone || setWhy(said(error)),
      );
    return () => {
      gone = true;
    };
  }, [chosen]);
  const options = useMemo(
    () => [
      ...(known?.datasets ?? []).map((one) => [`dataset:${one}`, `dataset ${one}`] as const),
      ...(known?.jobs ?? []).map(
        (one) =>
          [`job:${one.id}`, `results of ${one.id.slice(0, 12)} (${one.application})`] as const,
      ),
    ],
    [known],
  );
  const select = (
    <label class="field">
      over
      <select value={chosen} onChange={(event) => choose("over", event.currentTarget.value)}>
        {!options.some(([key]) => key === chosen) && <option value={chosen}>{chosen}</option>}
        {options.map(([key, words]) => (
          <option key={key} value={key}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
  if (place) return <SqlPage key={place.key} place={place} over={select} />;
  return (
    <>
      <div class="row">
        <h1>SQL</h1>
        {chosen && select}
      </div>
      {why && <p class="notice bad">{why}</p>}
      {known && !chosen && (
        <p class="notice">
          There is nothing to ask yet: load a dataset, or submit a job and ask its results.
        </p>
      )}
      {!why && (chosen || !known) && <p class="dim">reading…</p>}
    </>
  );
}
