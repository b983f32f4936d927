// The datasets of the owner and those shared with it; one of them with its tables and versions.
import { useSignal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { get, said } from "./api.ts";
import { DropZone } from "./drop.tsx";
import { load } from "./loading.ts";
import { NewButton, NewDataset } from "./new_dataset.tsx";
import { type DatasetTables, datasetPath, datasetPlace, type Place, whoseOf } from "./places.ts";
import { usePolling } from "./polling.ts";
import { choose, option } from "./route.ts";
import { REJECTS, TableView } from "./tabled.tsx";
import { type Version, Versions } from "./versions.tsx";
import { bytes, count } from "./words.ts";

export interface Dataset {
  owner: string;
  name: string;
  application: string;
  version: number;
  rows: number;
  bytes: number;
  tables: Record<string, number>;
  readers: string[];
  own: boolean; // only the owner loads
}

const address = (one: Dataset) => `#/datasets/${encodeURIComponent(`${one.owner}/${one.name}`)}`;

export function DatasetList() {
  const found = useSignal<Dataset[] | null>(null);
  const more = useSignal(false); // others share more than is listed
  const why = useSignal("");
  usePolling(
    async (stop) => {
      try {
        const page = await get<{ datasets: Dataset[]; more?: boolean }>("/datasets", stop);
        found.value = page.datasets;
        more.value = page.more ?? false;
        why.value = "";
      } catch (error) {
        if (!stop.aborted) why.value = said(error);
      }
    },
    5000,
    [],
  );
  return (
    <>
      <div class="row">
        <h1>Datasets</h1>
        <span class="dim">{found.value ? count(found.value.length) : "reading…"}</span>
        <span class="grow" />
        <NewButton />
      </div>
      {option("new") && <NewDataset known={found.value ?? []} />}
      {why.value && <p class="notice bad">{why.value}</p>}
      {found.value?.length === 0 && (
        <p class="notice">
          There is no dataset yet. <em>new dataset</em> makes one with an application that Caudal
          ships with.{" "}
          <code>caudal load FOLDER --data data --gateway {location.origin} --dataset shelf</code>{" "}
          makes one with an application of yours; then files can be dropped here.
        </p>
      )}
      {more.value && (
        <p class="notice">
          Others share more with you than is listed. Who knows OWNER/NAME of a dataset may ask it.
        </p>
      )}
      {found.value && found.value.length > 0 && (
        <section class="card flush" aria-label="datasets">
          <div class="scroll" role="region" aria-label="datasets" tabIndex={0}>
            <table>
              <thead>
                <tr>
                  <th>dataset</th>
                  <th>owner</th>
                  <th>application</th>
                  <th class="num">version</th>
                  <th class="num">rows</th>
                  <th class="num">size</th>
                  <th>tables</th>
                  <th>read by</th>
                </tr>
              </thead>
              <tbody>
                {found.value.map((one) => (
                  <tr key={`${one.owner}/${one.name}`}>
                    <td>
                      <a href={address(one)}>{one.name}</a>
                    </td>
                    <td>{one.owner}</td>
                    <td dir="auto">{one.application}</td>
                    <td class="num">{one.version}</td>
                    <td class="num">{count(one.rows)}</td>
                    <td class="num">{bytes(one.bytes)}</td>
                    <td>
                      {Object.entries(one.tables)
                        .filter(([name]) => name !== REJECTS)
                        .map(([name, rows]) => `${name} ${count(rows)}`)
                        .join(", ")}
                    </td>
                    <td>{one.readers.join(", ")}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
    </>
  );
}

interface Opened {
  dataset: Dataset;
  held: DatasetTables | null; // null: of an earlier version
  place: Place | null;
  versions: Version[];
  note: string;
}

async function opened(name: string): Promise<Opened> {
  const whose = whoseOf(name);
  const dataset = await get<Dataset>(datasetPath(whose));
  const found = await get<{ versions: Version[] }>(datasetPath(whose, "/versions"));
  const versions = found.versions.reverse();
  try {
    const held = await get<DatasetTables>(datasetPath(whose, "/tables"));
    return { dataset, held, place: datasetPlace(whose, held, held.version), versions, note: "" };
  } catch (error) {
    return { dataset, held: null, place: null, versions, note: said(error) };
  }
}

export function DatasetView({ name }: { name: string }) {
  const [seen, setSeen] = useState<Opened | null>(null);
  const [why, setWhy] = useState("");
  const [round, setRound] = useState(0);
  useEffect(() => {
    let gone = false;
    opened(name).then(
      (found) => gone || setSeen(found),
      (error) => gone || setWhy(said(error)),
    );
    return () => {
      gone = true;
    };
  }, [name, round]);
  if (!seen) return why ? <p class="notice bad">{why}</p> : <p class="dim">reading…</p>;
  const { dataset, held, place, versions, note } = seen;
  const tables = Object.keys(dataset.tables);
  const chosen = option("table", tables[0] ?? "");
  return (
    <>
      <div class="row">
        <h1>
          <a href="#/datasets">Datasets</a> / <span dir="auto">{dataset.name}</span>
        </h1>
        <span class="dim" dir="auto">
          {dataset.application} · of {dataset.owner} · version {dataset.version} ·{" "}
          {count(dataset.rows)} rows · {bytes(dataset.bytes)}
        </span>
        <span class="grow" />
        <a class="button" href={`#/sql?over=${encodeURIComponent(`dataset:${name}`)}`}>
          ask it
        </a>
      </div>
      {note && <p class="notice">{note}</p>}
      {held && dataset.own && (
        <DropZone
          tables={held.application.tables}
          load={(file, table, onProgress, stop) =>
            load(file, dataset.name, table, held.application, onProgress, stop)
          }
          onLoaded={() => setRound(round + 1)}
        />
      )}
      <div class="row" role="group" aria-label="tables">
        {tables.map((one) => (
          <button
            type="button"
            key={one}
            aria-pressed={one === chosen}
            onClick={() => choose("table", one)}
          >
            {one} <span class="dim small">{count(dataset.tables[one] ?? 0)}</span>
          </button>
        ))}
      </div>
      {place && (
        <TableView
          key={`${chosen} ${dataset.version}`}
          place={place}
          table={chosen}
          rows={dataset.tables[chosen] ?? 0}
        />
      )}
      <Versions versions={versions} />
    </>
  );
}
