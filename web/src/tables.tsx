// The tables of `caudal ui`: their columns with nulls, extremes and histograms, sample rows, versions.
import { useEffect, useState } from "preact/hooks";
import { get, said, send } from "./api.ts";
import { Grid } from "./grid.tsx";
import type { RowSource } from "./kinds.ts";
import { choose, option } from "./route.ts";
import { type Answer, sourceOf, type Tables } from "./sql.tsx";
import { bytes, count, moment } from "./words.ts";

interface ColumnProfile {
  name: string;
  type: string;
  nulls: number;
  distinct: number;
  least: string | null;
  most: string | null;
  bins: number[];
}
interface Profile {
  table: string;
  rows: number;
  columns: ColumnProfile[];
}

/** A share in percent that never rounds a little to none, nor nearly all to all. */
export function percent(part: number, all: number): string {
  if (!all || !part) return "0 %";
  if (part === all) return "100 %";
  const share = (100 * part) / all;
  return share < 0.1 ? "< 0.1 %" : share > 99.9 ? "> 99.9 %" : `${share.toFixed(1)} %`;
}

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;

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

function Columns({ profile }: { profile: Profile }) {
  return (
    <div class="scroll" role="region" aria-label={`columns of ${profile.table}`} tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th>column</th>
            <th>type</th>
            <th class="num">null</th>
            <th class="num">distinct, about</th>
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
              <td class="num">{count(one.distinct)}</td>
              <td>
                <span class="clip narrow" dir="auto">
                  {one.least ?? ""}
                </span>
              </td>
              <td>
                <span class="clip narrow" dir="auto">
                  {one.most ?? ""}
                </span>
              </td>
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

function Versions({ tables }: { tables: Tables }) {
  if (!tables.versions.length) return null;
  return (
    <section class="card flush" aria-label="versions">
      <h2>Versions</h2>
      <div class="scroll" role="region" aria-label="versions of the dataset" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th class="num">version</th>
              <th>time</th>
              <th>kind</th>
              <th class="num">rows</th>
              <th class="num">files</th>
              <th class="num">size</th>
              <th class="num">rejected</th>
            </tr>
          </thead>
          <tbody>
            {tables.versions.map((one) => (
              <tr key={one.number}>
                <td class="num">{one.number}</td>
                <td>{moment(one.time / 1000)}</td>
                <td>{one.kind}</td>
                <td class="num">{count(one.rows)}</td>
                <td class="num">{count(one.files)}</td>
                <td class="num">{bytes(one.bytes)}</td>
                <td class="num">{count(one.rejected)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

export function TablesPage() {
  const [tables, setTables] = useState<Tables | null>(null);
  const [profile, setProfile] = useState<Profile | null>(null);
  const [sample, setSample] = useState<RowSource | null>(null);
  const [why, setWhy] = useState("");
  useEffect(() => {
    get<Tables>("/ui").then(setTables, (error) => setWhy(said(error)));
  }, []);
  const names = Object.keys(tables?.tables ?? {});
  const chosen = option("table", names[0] ?? "");
  useEffect(() => {
    if (!chosen) return;
    let gone = false;
    setProfile(null);
    setSample(null);
    setWhy("");
    const read = async () => {
      const found = await get<Profile>(`/ui/tables/${encodeURIComponent(chosen)}`);
      if (gone) return;
      setProfile(found);
      const sql = `SELECT * FROM ${quoted(chosen)} LIMIT 100`;
      const rows = await send<Answer>("POST", "/ui/sql", { sql });
      if (!gone) setSample(sourceOf(rows, chosen));
    };
    read().catch((error) => setWhy(said(error)));
    return () => {
      gone = true;
    };
  }, [chosen]);
  if (!tables) return why ? <p class="notice bad">{why}</p> : <p class="dim">reading…</p>;
  return (
    <>
      <div class="row">
        <h1>Tables</h1>
        <span class="dim" dir="auto">
          {tables.application}
        </span>
        {names.map((one) => (
          <button
            type="button"
            key={one}
            aria-pressed={one === chosen}
            onClick={() => choose("table", one)}
          >
            {one}
          </button>
        ))}
      </div>
      {why && <pre class="notice bad">{why}</pre>}
      <section class="card flush" aria-label="columns">
        <h2>
          {chosen} <span class="dim">{profile ? `${count(profile.rows)} rows` : "is read…"}</span>
        </h2>
        {profile && <Columns profile={profile} />}
      </section>
      {sample && (
        <section class="card" aria-label="sample rows">
          <h2>First rows</h2>
          <Grid key={chosen} source={sample} />
        </section>
      )}
      <Versions tables={tables} />
    </>
  );
}
