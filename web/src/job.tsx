// One job: how far it is, its plan, what workers did, its answers and what was rejected.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { type AskSoFar, Growing } from "./growing.tsx";
import { StateMark } from "./jobs.tsx";
import type { JobData, Row, RowSource, Status, Task } from "./kinds.ts";
import { Plan } from "./plan.tsx";
import { chooseAll, option } from "./route.ts";
import { ShapeButtons, Shaped } from "./shape.tsx";
import { Timeline } from "./timeline.tsx";
import { count, moment, seconds, shown } from "./words.ts";

export interface JobView {
  data: JobData;
  open: (query: string) => Promise<RowSource>;
  soFar?: AskSoFar;
  downloads?: (query: string) => ComponentChildren;
  rejects: Row[] | null;
  actions?: ComponentChildren;
  note?: string;
}

function width(part: number, all: number): { width: string } {
  return { width: `${all ? Math.min(100, (100 * part) / all) : 0}%` };
}

function Tables({ status }: { status: Status }) {
  const folded = Object.values(status.folds);
  return (
    <section class="card" aria-label="progress">
      <h2>Progress</h2>
      <div class="meter">
        {Object.entries(status.tables).flatMap(([name, one]) => {
          const all = one.batches ?? Math.max(one.arrived, 1);
          return [
            <span key={`n ${name}`}>{name}</span>,
            <div
              key={`t ${name}`}
              class="track"
              role="progressbar"
              aria-label={`${name}: mapped batches`}
              aria-valuenow={one.mapped}
              aria-valuemin={0}
              aria-valuemax={all}
            >
              <i class="arrived" style={width(one.arrived, all)} />
              <i style={width(one.mapped, all)} />
            </div>,
            <span key={`w ${name}`} class="num small">
              {count(one.mapped)} mapped of {count(one.arrived)} arrived
              {one.batches === null ? ", more to come" : ""}
            </span>,
          ];
        })}
        {folded.length > 0 && [
          <span key="n">folds</span>,
          <div
            key="t"
            class="track"
            role="progressbar"
            aria-label="folded partitions"
            aria-valuenow={folded.reduce((sum, [done]) => sum + done, 0)}
            aria-valuemin={0}
            aria-valuemax={folded.reduce((sum, [, all]) => sum + all, 0)}
          >
            <i
              class="done"
              style={width(
                folded.reduce((sum, [done]) => sum + done, 0),
                folded.reduce((sum, [, all]) => sum + all, 0),
              )}
            />
          </div>,
          <span key="w" class="num small">
            {count(folded.reduce((sum, [done]) => sum + done, 0))} of{" "}
            {count(folded.reduce((sum, [, all]) => sum + all, 0))}
          </span>,
        ]}
        <span>answers</span>
        <div
          class="track"
          role="progressbar"
          aria-label="answered queries"
          aria-valuenow={answered(status)}
          aria-valuemin={0}
          aria-valuemax={status.queries.length}
        >
          <i class="answer" style={width(answered(status), status.queries.length)} />
        </div>
        <span class="num small">
          {answered(status)} of {status.queries.length}
        </span>
      </div>
    </section>
  );
}

const answered = (status: Status) =>
  status.queries.filter((one) => status.results.includes(one)).length;

// Sort, filter and chart are those of one answer: another one begins without them.
const UNSHAPED = { sort: "", filter: "", chart: "", x: "", y: "" };

function Results({ view }: { view: JobView }) {
  const { status } = view.data;
  const query = option("query", status.queries[0] ?? "");
  const ready = status.results.includes(query) && !status.failed[query];
  const growing = !status.outcome && status.growing?.includes(query) && view.soFar;
  const [source, setSource] = useState<RowSource | null>(null);
  const [why, setWhy] = useState("");
  useEffect(() => {
    setSource(null);
    setWhy("");
    if (ready)
      view
        .open(query)
        .then(setSource, (error) => setWhy(error instanceof Error ? error.message : String(error)));
  }, [query, ready, view.data.job, status.run]);
  const pick = (name: string) => chooseAll({ ...UNSHAPED, query: name });
  const tab = (name: string) => (
    <button
      type="button"
      role="tab"
      key={name}
      id={`tab-${name}`}
      aria-selected={name === query}
      aria-controls="answer"
      tabIndex={name === query ? 0 : -1}
      onClick={() => pick(name)}
      onKeyDown={(event) => {
        const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
        const next = status.queries[status.queries.indexOf(name) + step];
        if (step && next) {
          pick(next);
          document.getElementById(`tab-${next}`)?.focus();
        }
      }}
    >
      {name} {status.failed[name] ? "✕" : status.results.includes(name) ? "✓" : "…"}
    </button>
  );
  return (
    <section class="card" aria-label="answers">
      <div class="row" style={{ marginBottom: ".7rem" }}>
        <h2 style={{ margin: 0 }}>Answers</h2>
        <div role="tablist" aria-label="queries">
          {status.queries.map(tab)}
        </div>
        <span class="grow" />
        <ShapeButtons />
        {source && view.downloads?.(query)}
      </div>
      <div id="answer" role="tabpanel" aria-labelledby={`tab-${query}`}>
        {status.failed[query] && <p class="notice bad">{status.failed[query]}</p>}
        {why && <p class="notice bad">{why}</p>}
        {!ready && !status.failed[query] && !growing && (
          <p class="dim">{query} is not answered yet.</p>
        )}
        {!ready && !status.failed[query] && growing && (
          <Growing key={query} query={query} ask={growing} />
        )}
        {source?.about.title && (
          <p class="dim" dir="auto" style={{ marginTop: 0 }}>
            {source.about.title}
            {source.about.seconds ? `, computed in ${seconds(source.about.seconds)}` : ""}
          </p>
        )}
        {source && <Shaped key={query} source={source} />}
      </div>
    </section>
  );
}

interface Place {
  file?: string;
  line?: number;
  record?: string | null;
}

const PLACES = 5; // of each reason

// The places of a reason that are shown, with the raw record where it is known.
export function placesOf(row: Row): { at: string; record: string }[] {
  return ((row.first ?? []) as unknown as Place[]).slice(0, PLACES).map((place) => ({
    at: `${(place.file ?? "").split("/").at(-1)}:${place.line}`,
    record: place.record ?? "",
  }));
}

function Rejects({ rows }: { rows: Row[] | null }) {
  if (rows === null) return null;
  return (
    <section class="card flush" aria-label="rejected rows">
      <h2>Rejected rows</h2>
      {rows.length === 0 ? (
        <p class="dim" style={{ padding: "0 1rem" }}>
          none
        </p>
      ) : (
        <div
          class="scroll"
          tabIndex={0}
          role="region"
          aria-label="rejected rows by table and reason"
        >
          <table>
            <thead>
              <tr>
                <th>table</th>
                <th>reason</th>
                <th class="num">rows</th>
                <th>first places and records</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={`${row.table} ${row.reason}`}>
                  <td>{shown(row.table)}</td>
                  <td class="wrap">
                    {row.reason === null
                      ? "kept, with bytes that are not UTF-8"
                      : shown(row.reason)}
                  </td>
                  <td class="num">{shown(row.rows)}</td>
                  <td class="places small mono">
                    {placesOf(row).map((place, number) => (
                      <div key={number}>
                        <span class="at" dir="auto">
                          {place.at}
                        </span>{" "}
                        {place.record && (
                          <span class="record" dir="auto" title={place.record}>
                            {place.record}
                          </span>
                        )}
                      </div>
                    ))}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Slowest({ tasks }: { tasks: Task[] }) {
  const most = [...tasks].sort((a, b) => b.ended - b.began - (a.ended - a.began)).slice(0, 8);
  if (!most.length) return null;
  return (
    <details>
      <summary>the slowest tasks</summary>
      <table>
        <tbody>
          {most.map((one) => (
            <tr key={`${one.worker} ${one.began}`}>
              <td>
                {one.kind} {one.name} {one.number}
              </td>
              <td>{one.worker}</td>
              <td class="num">{seconds(one.ended - one.began)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

export function JobPage(view: JobView) {
  const { job, status, plans, tasks, samples } = view.data;
  const query = option("query", status.queries[0] ?? "");
  const plan = plans[query];
  const state = status.outcome?.state ?? "running";
  const busy = useMemo(() => {
    const found = new Set<string>();
    if (state === "running")
      for (const [name, [done, all]] of Object.entries(status.folds))
        if (done < all) found.add(name);
    return found;
  }, [status, state]);
  const end = status.outcome?.at ?? Date.now() / 1000;
  return (
    <>
      <div class="row">
        <h1>
          {status.application} <span class="mono dim">{job}</span>
        </h1>
        <span class="grow" />
        {view.actions}
      </div>
      <dl class="facts" aria-label="the job">
        <div>
          <dt>state</dt>
          <dd>
            <StateMark state={state} failed={Object.keys(status.failed).length} />
          </dd>
        </div>
        <div>
          <dt>created</dt>
          <dd>{moment(status.created)}</dd>
        </div>
        <div>
          <dt>{status.outcome ? "took" : "since"}</dt>
          <dd>{seconds(Math.max(0, end - status.created))}</dd>
        </div>
        {tasks.length > 0 && (
          <div>
            <dt>tasks</dt>
            <dd>{count(tasks.length)}</dd>
          </div>
        )}
      </dl>
      {status.outcome?.reason && <p class="notice bad">{status.outcome.reason}</p>}
      {view.note && <p class="dim small">{view.note}</p>}
      {state === "running" && <Tables status={status} />}
      <Results view={view} />
      {plan && (
        <section class="card" aria-label="plan">
          <h2>
            Plan of {query}: <span dir="auto">{plan.title}</span>
          </h2>
          <Plan graph={plan} tasks={tasks} busy={busy} />
        </section>
      )}
      {(tasks.length > 0 || job) && (
        <section class="card" aria-label="timeline">
          <h2>Timeline</h2>
          <Timeline tasks={tasks} samples={samples} />
          <Slowest tasks={tasks} />
        </section>
      )}
      <Rejects rows={view.rejects} />
    </>
  );
}
