// A place to drop CSV files onto: which table they are for, how far they are, and cancel.
import { useRef, useState } from "preact/hooks";
import { said } from "./api.ts";
import { type Loaded, type Progress, passes } from "./loading.ts";
import { CANCEL } from "./places.ts";
import { bytes, count } from "./words.ts";

export type Load = (
  file: File,
  table: string,
  onProgress: (progress: Progress) => void,
  stop: AbortSignal,
) => Promise<Loaded>;

const WORDS = { read: "reading", sent: "sending", cleaned: "cleaning" };

export function told(loaded: Loaded): string {
  if (loaded.skipped) return `nothing to load: ${loaded.skipped}`;
  const rows = `${count(loaded.rows)} ${loaded.rows === 1 ? "row" : "rows"}`;
  const rejected = loaded.rejected ? `, ${count(loaded.rejected)} rejected` : "";
  return `version ${loaded.version} has ${rows} of it${rejected}`;
}

export interface Target {
  name: string;
  columns: string[]; // that a file must have; empty: not known
}

const MOST_LINE = 65_536; // bytes of a file in which its first line is looked for

/** The table that a file is for: the one with most columns that are all in the file's first line;
 * else the first whose name is in the file's name; else the first. The gateway checks the columns. */
export function tableFor(file: string, line: string, tables: Target[]): string {
  const name = file.toLowerCase();
  const fits = tables
    .filter(({ columns }) => columns.length && columns.every((one) => line.includes(one)))
    .sort((a, b) => b.columns.length - a.columns.length);
  const named = tables.find((one) => name.includes(one.name.toLowerCase()));
  return (fits[0] ?? named ?? tables[0])?.name ?? "";
}

async function firstLine(file: File): Promise<string> {
  const text = await file.slice(0, MOST_LINE).text();
  return text.split("\n", 1)[0] ?? "";
}

interface Turn {
  file: File;
  progress: Progress | null;
  stop: AbortController;
}

export function DropZone({
  tables,
  load,
  onLoaded,
  lacks = "",
}: {
  tables: Target[];
  load: Load;
  onLoaded: (loaded: Loaded) => void;
  lacks?: string; // what must be given before files are taken
}) {
  const [table, setTable] = useState("");
  const [over, setOver] = useState(false);
  const [turn, setTurn] = useState<Turn | null>(null);
  const [ends, setEnds] = useState<{ name: string; words: string; bad: boolean }[]>([]);
  const input = useRef<HTMLInputElement>(null);
  const end = (name: string, words: string, bad: boolean) =>
    setEnds((now) => [{ name, words, bad }, ...now].slice(0, 10));
  const take = async (files: File[]) => {
    if (turn) return;
    if (lacks) return end(files[0]?.name ?? "", lacks, true);
    for (const file of files) {
      const stop = new AbortController();
      setTurn({ file, progress: null, stop });
      const onProgress = (progress: Progress) => setTurn({ file, progress, stop });
      try {
        const into = table || tableFor(file.name, await firstLine(file), tables);
        const found = await load(file, into, onProgress, stop.signal);
        end(file.name, `${into}: ${told(found)}`, false);
        onLoaded(found);
      } catch (error) {
        const words = passes(error) ? `${said(error)}; drop it again to go on` : said(error);
        end(file.name, stop.signal.aborted ? "cancelled" : words, true);
      }
    }
    setTurn(null);
  };
  const { done = 0, all = 1, step = "read" } = turn?.progress ?? {};
  const amount =
    step === "cleaned" ? `${done} of ${all} batches` : `${bytes(done)} of ${bytes(all)}`;
  return (
    <section
      class={`card drop ${over ? "over" : ""}`}
      aria-label="load a file"
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        take([...(event.dataTransfer?.files ?? [])]);
      }}
    >
      <div class="row">
        <h2 style={{ margin: 0 }}>Load</h2>
        <span>drop a CSV file here, or</span>
        <button type="button" disabled={turn !== null} onClick={() => input.current?.click()}>
          choose files
        </button>
        <input
          ref={input}
          type="file"
          accept=".csv,text/csv"
          multiple
          hidden
          aria-label="CSV files"
          onChange={(event) => {
            take([...(event.currentTarget.files ?? [])]);
            event.currentTarget.value = "";
          }}
        />
        <label class="field">
          into
          <select value={table} onChange={(event) => setTable(event.currentTarget.value)}>
            <option value="">the table that fits</option>
            {tables.map((one) => (
              <option key={one.name}>{one.name}</option>
            ))}
          </select>
        </label>
      </div>
      {turn && (
        <div class="row loading">
          <span class="clip" dir="auto">
            {turn.file.name}
          </span>
          <div
            class="track"
            role="progressbar"
            aria-label={`load of ${turn.file.name}`}
            aria-valuenow={Math.round((100 * done) / Math.max(1, all))}
            aria-valuemin={0}
            aria-valuemax={100}
          >
            <i style={{ width: `${(100 * done) / Math.max(1, all)}%` }} />
          </div>
          <span class="num small">
            {WORDS[step]} {amount}
          </span>
          <button type="button" class="danger" onClick={() => turn.stop.abort(CANCEL)}>
            cancel
          </button>
        </div>
      )}
      {ends.length > 0 && (
        <ul class="ends" aria-live="polite">
          {ends.map((one, place) => (
            <li key={`${ends.length - place}`}>
              <span class={`state ${one.bad ? "bad" : "good"}`}>
                <b dir="auto">{one.name}</b> <span>{one.words}</span>
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
