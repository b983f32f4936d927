// The tables of `caudal ui`: files, or a dataset with its versions and a place to drop files.
import { useEffect, useState } from "preact/hooks";
import { get, request, said, send } from "./api.ts";
import { DropZone, type Load } from "./drop.tsx";
import type { Loaded } from "./loading.ts";
import { type Columns, localPlace, type Place } from "./places.ts";
import { choose, option } from "./route.ts";
import { SqlPage } from "./sql.tsx";
import { REJECTS, TableView } from "./tabled.tsx";
import { type Version, Versions } from "./versions.tsx";

export interface Session {
  application: string;
  title: string;
  tables: Record<string, Columns>;
  parameters: Record<string, string>;
  versions: Version[]; // of a dataset
  shelf: string; // the dataset that takes files; empty: none
  series: boolean;
}

const PART = 8_000_000;

/** Sends a file to `caudal ui` part by part, and has it loaded. */
const load: Load = async (file, table, onProgress, stop) => {
  const name = encodeURIComponent(file.name);
  let sent = 0;
  do {
    const body = file.slice(sent, sent + PART);
    const path = `/ui/upload?name=${name}&offset=${sent}`;
    await request(path, { method: "PUT", body, signal: stop });
    sent = Math.min(file.size, sent + PART);
    onProgress({ step: "sent", done: sent, all: file.size });
  } while (sent < file.size);
  onProgress({ step: "cleaned", done: 0, all: 1 });
  const path = `/ui/load?name=${name}&table=${encodeURIComponent(table)}`;
  return send<Loaded>("POST", path, undefined, stop);
};

export function useSession(round: number) {
  const [seen, setSeen] = useState<{ session: Session; place: Place } | null>(null);
  const [why, setWhy] = useState("");
  useEffect(() => {
    get<Session>("/ui").then(
      (session) => {
        const title = [session.application, session.title].filter(Boolean).join(" · ");
        setSeen({ session, place: localPlace(title, session.tables, session.parameters) });
      },
      (error) => setWhy(said(error)),
    );
  }, [round]);
  return { seen, why };
}

export function LocalSql() {
  const { seen, why } = useSession(0);
  if (!seen) return why ? <p class="notice bad">{why}</p> : <p class="dim">reading…</p>;
  return <SqlPage place={seen.place} />;
}

export function TablesPage() {
  const [round, setRound] = useState(0);
  const { seen, why } = useSession(round);
  if (!seen) return why ? <p class="notice bad">{why}</p> : <p class="dim">reading…</p>;
  const { session, place } = seen;
  const names = Object.keys(session.tables);
  const chosen = option("table", names[0] ?? "");
  return (
    <>
      <div class="row">
        <h1>{session.versions.length ? "Dataset" : "Tables"}</h1>
        <span class="dim" dir="auto">
          {[session.application, session.shelf].filter(Boolean).join(" · ")}
        </span>
      </div>
      {session.shelf && (
        <DropZone
          tables={names.filter((one) => one !== REJECTS).map((name) => ({ name, columns: [] }))}
          load={load}
          onLoaded={() => setRound(round + 1)}
        />
      )}
      <div class="row" role="group" aria-label="tables">
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
      {chosen ? (
        <TableView key={chosen} place={place} table={chosen} />
      ) : (
        <p class="notice">
          There are no tables: start <code>caudal ui</code> with an application or with files.
        </p>
      )}
      <Versions versions={session.versions} />
    </>
  );
}
