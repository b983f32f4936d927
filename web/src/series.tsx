// Series of a store: their months, a line chart, and two versions side by side.
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, said, save } from "./api.ts";
import { colour, Lines, type Series } from "./chart.tsx";
import { Grid } from "./grid.tsx";
import type { Row, RowSource } from "./kinds.ts";
import { choose, option } from "./route.ts";
import { count } from "./words.ts";

export interface SeriesDataset {
  name: string;
  version: number;
  series: number;
  problem: string;
}
interface Month {
  month: string;
  state: string;
  versions: number;
}
interface Contents {
  name: string;
  codes: string[];
  months: Month[];
  versions: { number: number; day: string; source: string; added: number; revised: number }[];
}
export interface Values {
  code: string;
  unit: string;
  times: number[];
  values: (number | null)[];
  known: number[];
  notes: string[];
}

const LOOKS: Record<string, string> = { fresh: "good", stale: "warn", unfinished: "busy" };

/** The months of each year, January first; null where there is none. The newest year first. */
export function byYear(months: Month[]): [string, (Month | null)[]][] {
  const years = new Map<string, (Month | null)[]>();
  for (const one of months) {
    const year = one.month.slice(0, 4);
    const row = years.get(year) ?? new Array<Month | null>(12).fill(null);
    row[Number(one.month.slice(5, 7)) - 1] = one;
    years.set(year, row);
  }
  return [...years].sort(([one], [other]) => other.localeCompare(one));
}

export interface Revision {
  time: number;
  before: number | null;
  after: number | null;
}

/** Both readings over all their times, and what differs: changed values first, then added ones. */
export function compared(now: Values, then: Values) {
  const times = [...new Set([...now.times, ...then.times])].sort((one, other) => one - other);
  const at = (read: Values) => new Map(read.times.map((one, place) => [one, read.values[place]]));
  const [newer, older] = [at(now), at(then)];
  const after = times.map((one) => newer.get(one) ?? null);
  const before = times.map((one) => older.get(one) ?? null);
  const revisions: Revision[] = [];
  times.forEach((time, place) => {
    const [one, other] = [before[place] ?? null, after[place] ?? null];
    if (one !== other) revisions.push({ time, before: one, after: other });
  });
  const isAdded = (one: Revision) => Number(one.before === null);
  revisions.sort((one, other) => isAdded(one) - isAdded(other) || other.time - one.time);
  return { times, before, after, revisions };
}

const day = (time: number) => new Date(time * 1000).toISOString().slice(0, 10);

function Months({ contents }: { contents: Contents }) {
  const states = new Map<string, number>();
  for (const one of contents.months) states.set(one.state, (states.get(one.state) ?? 0) + 1);
  return (
    <section class="card" aria-label="months">
      <div class="row" style={{ marginBottom: ".6rem" }}>
        <h2 style={{ margin: 0 }}>Months</h2>
        {[...states].map(([state, number]) => (
          <span key={state} class={`state ${LOOKS[state] ?? "bad"}`}>
            {count(number)} {state}
          </span>
        ))}
      </div>
      <div class="scroll" role="region" aria-label="months by year" tabIndex={0}>
        <table class="months">
          <thead>
            <tr>
              <th>year</th>
              {Array.from({ length: 12 }, (_, place) => place + 1).map((one) => (
                <th key={one} class="num">
                  {one}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {byYear(contents.months).map(([year, months]) => (
              <tr key={year}>
                <td>{year}</td>
                {months.map((one, place) => (
                  <td key={place}>
                    {one && (
                      <span
                        class={`month ${LOOKS[one.state] ?? "bad"}`}
                        title={`${one.month}: ${one.state}, ${one.versions} versions`}
                      >
                        <span class="unseen">
                          {one.month} {one.state}
                        </span>
                        {one.versions}
                      </span>
                    )}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="dim small" style={{ margin: ".5rem 0 0" }}>
        The number is how many versions brought values of the month.
      </p>
    </section>
  );
}

/** What the chart shows, as CSV: names and numbers that need no quotes. */
export function csvOf(found: { times: number[] }, lines: Series[]): string {
  const rows = found.times.map((time, place) =>
    [day(time), ...lines.map((one) => one.values[place] ?? "")].join(","),
  );
  return [["date", ...lines.map((one) => one.label)].join(","), ...rows, ""].join("\n");
}

function sourceOf(revisions: Revision[], then: string): RowSource {
  const columns = [
    { name: "date", type: "string" },
    { name: then, type: "double" },
    { name: "newest", type: "double" },
    { name: "change", type: "double" },
  ];
  const rows: Row[] = revisions.map(({ time, before, after }) => ({
    date: day(time),
    [then]: before,
    newest: after,
    change: before === null || after === null ? null : after - before,
  }));
  return {
    about: { query: "revisions", title: "", rows: rows.length, bytes: 0, columns },
    rows: async (offset, limit) => rows.slice(offset, offset + limit),
  };
}

function Chart({ dataset, code, asOf }: { dataset: string; code: string; asOf: string }) {
  const [read, setRead] = useState<{ now: Values; then: Values | null } | null>(null);
  const [why, setWhy] = useState("");
  useEffect(() => {
    let gone = false;
    setRead(null);
    setWhy("");
    const path = `/ui/series/${encodeURIComponent(dataset)}/${encodeURIComponent(code)}`;
    const both = Promise.all([
      get<Values>(path),
      asOf ? get<Values>(`${path}?as_of=${asOf}`) : Promise.resolve(null),
    ]);
    both.then(
      ([now, then]) => gone || setRead({ now, then }),
      (error) => gone || setWhy(said(error)),
    );
    return () => {
      gone = true;
    };
  }, [dataset, code, asOf]);
  const found = useMemo(() => read && compared(read.now, read.then ?? read.now), [read]);
  const lines = useMemo(() => {
    if (!found) return [];
    const now = { label: "newest", colour: colour("--accent"), values: found.after };
    const then = { label: `version ${asOf}`, colour: colour("--retry"), values: found.before };
    return asOf ? [now, then] : [now];
  }, [found]);
  const source = useMemo(() => found && sourceOf(found.revisions, `version ${asOf}`), [found]);
  if (why) return <pre class="notice bad">{why}</pre>;
  if (!read || !found) return <p class="dim">reading…</p>;
  return (
    <>
      <section class="card" aria-label="values">
        <h2>
          <span dir="auto">{code}</span>{" "}
          <span class="dim">
            {read.now.unit} · {count(read.now.times.length)} values
          </span>{" "}
          <button
            type="button"
            onClick={() => save(new Blob([csvOf(found, lines)]), `${code}.csv`)}
          >
            CSV
          </button>
        </h2>
        {read.now.notes.map((one) => (
          <p key={one} class="notice small">
            {one}
          </p>
        ))}
        {found.times.length > 0 ? (
          <Lines
            x={found.times}
            series={lines}
            time={true}
            utc={true}
            height={300}
            along="date"
            unit={read.now.unit}
          />
        ) : (
          <p class="dim">This series has no values yet.</p>
        )}
      </section>
      {asOf && source && (
        <section class="card" aria-label="revisions">
          <h2>
            Revisions since version {asOf}{" "}
            <span class="dim">
              {count(found.revisions.filter((one) => one.before !== null).length)} changed,{" "}
              {count(found.revisions.filter((one) => one.before === null).length)} added
            </span>
          </h2>
          {found.revisions.length ? (
            <Grid source={source} />
          ) : (
            <p class="dim">No value was added or changed since.</p>
          )}
        </section>
      )}
    </>
  );
}

export function SeriesPage() {
  const [datasets, setDatasets] = useState<SeriesDataset[] | null>(null);
  const [contents, setContents] = useState<Contents | null>(null);
  const [why, setWhy] = useState("");
  useEffect(() => {
    get<SeriesDataset[]>("/ui/series").then(setDatasets, (error) => setWhy(said(error)));
  }, []);
  const sound = (datasets ?? []).filter((one) => !one.problem);
  const dataset = option("dataset", sound[0]?.name ?? "");
  useEffect(() => {
    setContents(null);
    if (!dataset) return;
    let gone = false;
    get<Contents>(`/ui/series/${encodeURIComponent(dataset)}`).then(
      (found) => gone || setContents(found),
      (error) => gone || setWhy(said(error)),
    );
    return () => {
      gone = true;
    };
  }, [dataset]);
  const code = option("series", contents?.codes[0] ?? "");
  const asOf = option("as_of");
  const open = (name: string) => {
    choose("series", "");
    choose("as_of", "");
    choose("dataset", name);
  };
  if (!datasets) return why ? <p class="notice bad">{why}</p> : <p class="dim">reading…</p>;
  return (
    <>
      <div class="row">
        <h1>Series</h1>
        <label class="field">
          dataset
          <select value={dataset} onChange={(event) => open(event.currentTarget.value)}>
            {sound.map((one) => (
              <option key={one.name}>{one.name}</option>
            ))}
          </select>
        </label>
        {contents && (
          <>
            <label class="field">
              series
              <select
                value={code}
                onChange={(event) => choose("series", event.currentTarget.value)}
              >
                {contents.codes.map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            </label>
            <label class="field">
              beside it, as of
              <select value={asOf} onChange={(event) => choose("as_of", event.currentTarget.value)}>
                <option value="">nothing</option>
                {contents.versions.map((one) => (
                  <option key={one.number} value={one.number}>
                    version {one.number} of {one.day}
                  </option>
                ))}
              </select>
            </label>
          </>
        )}
      </div>
      {why && <p class="notice bad">{why}</p>}
      {datasets
        .filter((one) => one.problem)
        .map((one) => (
          <p key={one.name} class="notice bad">
            {one.name}: {one.problem}
          </p>
        ))}
      {!sound.length && (
        <p class="notice">
          There is no series in this store yet: <code>caudal series ingest</code> makes one.
        </p>
      )}
      {contents && code && <Chart dataset={dataset} code={code} asOf={asOf} />}
      {contents && <Months contents={contents} />}
    </>
  );
}
