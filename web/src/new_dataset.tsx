// A new dataset: a name, an application that the gateway ships with, and files. The first file makes
// it, by the same requests as any load (docs/adr/0069-a-page-makes-datasets-of-shipped-applications.md).
import { useEffect, useState } from "preact/hooks";
import { get, said } from "./api.ts";
import { DropZone } from "./drop.tsx";
import { load } from "./loading.ts";
import type { Text } from "./places.ts";
import { choose, option } from "./route.ts";

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/; // of datasets: docs/formats/http.md
const ANY = "any"; // the address does not say which application

export function NewButton() {
  const open = option("new") !== "";
  return (
    <button
      type="button"
      class={open ? "" : "main"}
      aria-expanded={open}
      onClick={() => choose("new", open ? "" : ANY)}
    >
      {open ? "close" : "new dataset"}
    </button>
  );
}

/** What a name lacks; empty if nothing. The gateway decides, this only says it earlier. */
export function lackOf(name: string): string {
  if (!name) return "the dataset needs a name";
  return NAME.test(name)
    ? ""
    : "a name has up to 64 letters, digits, _ . and -, and begins with a letter or digit";
}

function Files({ app }: { app: Text }) {
  return (
    <ul class="files">
      {app.tables.map((one) => (
        <li key={one.name}>
          <b>{one.name}</b>: a file like <code>{one.files.join(", ")}</code> with the columns{" "}
          <span class="dim">{one.columns.join(", ")}</span>
        </li>
      ))}
    </ul>
  );
}

export function NewDataset({ known }: { known: { name: string; own: boolean }[] }) {
  const [apps, setApps] = useState<Text[] | null>(null);
  const [why, setWhy] = useState("");
  const [name, setName] = useState("");
  const [made, setMade] = useState("");
  useEffect(() => {
    get<{ applications: Text[] }>("/applications").then(
      (found) => setApps(found.applications),
      (error) => setWhy(said(error)),
    );
  }, []);
  const app = apps?.find((one) => one.name === option("new")) ?? apps?.[0];
  if (!app)
    return (
      <p class={why ? "notice bad" : "dim"}>
        {why || (apps ? "This gateway ships no application." : "reading…")}
      </p>
    );
  const lacks = lackOf(name);
  const taken = known.some((one) => one.own && one.name === name) && made !== name;
  return (
    <section class="card" aria-label="new dataset">
      <h2>New dataset</h2>
      <div class="row">
        <label class="field">
          name
          <input
            value={name}
            maxLength={64}
            aria-invalid={name !== "" && lacks !== ""}
            aria-describedby="name-says"
            onInput={(event) => setName(event.currentTarget.value.trim())}
          />
        </label>
        <label class="field">
          application
          <select value={app.name} onChange={(event) => choose("new", event.currentTarget.value)}>
            {apps?.map((one) => (
              <option key={one.name}>{one.name}</option>
            ))}
          </select>
        </label>
        <span class="dim" dir="auto">
          {app.title}
        </span>
      </div>
      <p id="name-says" class="small dim" aria-live="polite">
        {(name && lacks) || (taken && `You have a dataset ${name}: files are added to it.`)}
      </p>
      <Files app={app} />
      <DropZone
        key={app.name}
        tables={app.tables}
        lacks={lacks}
        load={(file, table, onProgress, stop) => load(file, name, table, app, onProgress, stop)}
        onLoaded={() => setMade(name)}
      />
      {made && (
        <p role="status">
          <a href={`#/datasets/${encodeURIComponent(made)}`}>open {made}</a>
        </p>
      )}
    </section>
  );
}
