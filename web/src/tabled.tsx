// One table of any place: its columns with nulls, extremes and histograms, and its first rows.
import { useEffect, useState } from "preact/hooks";
import { said } from "./api.ts";
import { Grid } from "./grid.tsx";
import type { Row, RowSource } from "./kinds.ts";
import type { Place } from "./places.ts";
import {
  binsSelect,
  type ColumnProfile,
  countsSelect,
  type Profile,
  percent,
  profileOf,
  quoted,
  spans,
} from "./profile.ts";
import { count, shown } from "./words.ts";

export const REJECTS = "rejects";
const MOST_ASKED = 20_000_000; // rows of a table that a cluster reads without being asked to
const REJECTED =
  'SELECT "table", reason, count(*) AS rows FROM rejects GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2';

function Bins({ column }: { column: ColumnProfile }) {
  if (!column.bins.length) return null;
  const most = Math.max(...column.bins, 1);
  const bars = column.bins.map((one, place) => ({ one, place }));
  return (
    <svg class="bins" viewBox="0 0 100 24" role="img" aria-label={`histogram of ${column.name}`}>
      {bars.map(({ one, place }) => (
        <rect
          key={place}
          x={place * 5}
          y={24 - (24 * one) / most}
          width={4.4}
          height={(24 * one) / most}
        />
      ))}
    </svg>
  );
}

function Columns({ table, profile }: { table: string; profile: Profile }) {
  const counted = profile.columns.some((one) => one.distinct !== null);
  return (
    <div class="scroll" role="region" aria-label={`columns of ${table}`} tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th>column</th>
            <th>type</th>
            <th class="num">null</th>
            {counted && <th class="num">distinct, about</th>}
            <th>least</th>
            <th>most</th>
            <th>histogram</th>
          </tr>
        </thead>
        <tbody>
          {profile.columns.map((one) => (
            <tr key={one.name}>
              <td dir="auto">{one.name}</td>
              <td class="dim">{one.type.toLowerCase()}</td>
              <td class="num">{percent(one.nulls, profile.rows)}</td>
              {counted && <td class="num">{count(one.distinct ?? 0)}</td>}
              {[one.least, one.most].map((value, place) => (
                <td key={place}>
                  <span class="clip narrow" dir="auto">
                    {value === null ? "" : shown(value).slice(0, 80)}
                  </span>
                </td>
              ))}
              <td>
                <Bins column={one} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

async function allRows(source: RowSource): Promise<Row[]> {
  return source.rows(0, 10_000);
}

/** Asks for the profile and the first rows; both SELECTs are one question. */
async function looked(place: Place, table: string, stop: AbortSignal) {
  const columns = place.tables[table] ?? {};
  const first = { name: "sample", sql: `SELECT * FROM ${quoted(table)} LIMIT 100` };
  const counts = { name: "counts", sql: countsSelect(table, columns, place.isLocal) };
  const [sample, counted] = await place.answers([first, counts], {}, stop);
  if (!sample || !counted) throw new Error("no answer");
  const [row] = await allRows(counted.source);
  const found = spans(columns, row ?? {});
  const bins = found.length
    ? await place.answers([{ name: "bins", sql: binsSelect(table, found) }], {}, stop)
    : [];
  const rows = bins[0] ? await allRows(bins[0].source) : [];
  return { sample: sample.source, profile: profileOf(columns, row ?? {}, rows) };
}

async function rejected(place: Place, stop: AbortSignal) {
  const first = { name: "sample", sql: "SELECT * FROM rejects LIMIT 100" };
  const asked = [first, { name: "reasons", sql: REJECTED }];
  const [sample, reasons] = await place.answers(asked, {}, stop);
  return { sample: sample?.source ?? null, reasons: reasons?.source ?? null };
}

interface Seen {
  sample: RowSource | null;
  profile?: Profile;
  reasons?: RowSource | null;
}

export function TableView({ place, table, rows }: { place: Place; table: string; rows?: number }) {
  const [seen, setSeen] = useState<Seen | null>(null);
  const [why, setWhy] = useState("");
  const [asked, setAsked] = useState(place.isLocal || (rows ?? 0) <= MOST_ASKED);
  useEffect(() => {
    setSeen(null);
    setWhy("");
    if (!asked) return;
    const stop = new AbortController();
    const look =
      table === REJECTS ? rejected(place, stop.signal) : looked(place, table, stop.signal);
    look.then(
      (found) => stop.signal.aborted || setSeen(found),
      (error) => stop.signal.aborted || setWhy(said(error)),
    );
    return () => stop.abort();
  }, [place, table, asked]);
  const known = seen?.profile?.rows ?? rows;
  return (
    <>
      <section class="card flush" aria-label="columns">
        <h2>
          <span dir="auto">{table}</span>{" "}
          <span class="dim">
            {known !== undefined && `${count(known)} ${known === 1 ? "row" : "rows"}`}
            {!seen && !why && asked && " · is read…"}
          </span>
        </h2>
        {!asked && (
          <p style={{ padding: "0 1rem" }}>
            <button type="button" onClick={() => setAsked(true)}>
              read all rows for the columns' profiles
            </button>
          </p>
        )}
        {why && <pre class="notice bad">{why}</pre>}
        {seen?.profile && <Columns table={table} profile={seen.profile} />}
        {seen?.reasons && (
          <div style={{ padding: "0 1rem 1rem" }}>
            <Grid source={seen.reasons} />
          </div>
        )}
      </section>
      {seen?.sample && (
        <section class="card" aria-label="sample rows">
          <h2>First rows</h2>
          <Grid key={table} source={seen.sample} />
        </section>
      )}
    </>
  );
}
