// Loads a CSV file into a dataset of the cluster: offer it, send it part by part, wait for the version.
// The gateway cuts the parts into batches and keeps nothing (docs/formats/http.md).
import { ApiError, get, pause, request, send } from "./api.ts";
import type { Row, Status } from "./kinds.ts";
import { datasetPath, ended, type Text } from "./places.ts";

export const PART = 8_000_000; // bytes; part of the load's identity, so it never changes with time
const MOST_PART = 30_000_000;
const PATIENCE = 60; // seconds for which one request is asked again
const PASSING = [408, 429, 503]; // the sender was too slow, the owner too fast, the cluster too full

export interface Progress {
  step: "read" | "sent" | "cleaned";
  done: number;
  all: number;
}
export interface Loaded {
  version: number;
  rows: number;
  rejected: number;
  skipped: string; // why nothing was loaded
}
export interface Cut {
  header: number;
  offset: number;
  line: number;
  bytes: number;
  digest: string;
}
interface Offer {
  job: string;
  new: number[];
  skipped: { reason: string }[];
  version: number | null;
}

export function digestOf(
  data: Blob,
  stop: AbortSignal,
  onRead: (bytes: number) => void = () => {},
): Promise<string> {
  const worker = new Worker("/page/digest.js", { type: "module" });
  return new Promise<string>((found, failed) => {
    stop.addEventListener("abort", () => failed(stop.reason), { once: true });
    worker.onerror = (event) => failed(new Error(event.message || "the digest failed"));
    worker.onmessage = ({ data: told }) => {
      if (told.read) onRead(told.read);
      if (told.error) failed(new Error(told.error));
      if (told.digest) found(told.digest);
    };
    worker.postMessage(data);
  }).finally(() => worker.terminate());
}

/** The bytes of the next part: the header again, then the file from where the last part ended. */
export function nextPart(size: number, cut: Cut | null, wanted: number) {
  const from = cut?.offset ?? 0;
  const to = Math.min(size, from + wanted);
  return { header: cut?.header ?? 0, from, to, last: to === size };
}

export function isComplete(size: number, cut: Cut | null): boolean {
  return cut !== null && cut.offset >= size;
}

export async function load(
  file: File,
  dataset: string,
  table: string,
  text: Text,
  onProgress: (progress: Progress) => void,
  stop: AbortSignal,
): Promise<Loaded> {
  const read = (done: number) => onProgress({ step: "read", done, all: file.size });
  const digest = await digestOf(file, stop, read);
  const source = { table, name: file.name, bytes: file.size, digest, shown: file.name };
  const asked = {
    application: { ...text, queries: [] },
    options: { batch_bytes: PART },
    load: { dataset, sources: [source], again: false },
  };
  const path = datasetPath({ owner: "", name: dataset }, "/offers");
  const offer = await patiently(() => send<Offer>("POST", path, asked, stop), stop);
  if (!offer.new.length)
    return nothing(offer.version ?? 0, offer.skipped[0]?.reason ?? "it was loaded before");
  await created(offer.job, asked, stop);
  try {
    const sent = (done: number) => onProgress({ step: "sent", done, all: file.size });
    await sendParts(file, offer.job, table, sent, stop);
    return await committed(offer.job, onProgress, stop);
  } catch (error) {
    // What passes is no reason to cancel: the same file, dropped again, goes on with the same job.
    if (stop.aborted || !passes(error)) await send("DELETE", `/jobs/${offer.job}`).catch(() => {});
    throw error;
  }
}

const nothing = (version: number, skipped: string): Loaded => ({
  version,
  rows: 0,
  rejected: 0,
  skipped,
});

/** Creates the job, anew if one of the same load ended without a version. */
async function created(job: string, asked: unknown, stop: AbortSignal): Promise<void> {
  const create = () => patiently(() => send("PUT", `/jobs/${job}`, asked, stop), stop);
  await create();
  const { outcome } = await patiently(() => get<Status>(`/jobs/${job}`, stop), stop);
  if (!outcome || outcome.state === "done") return;
  await patiently(() => send("DELETE", `/jobs/${job}/results`), stop);
  await create();
}

async function sendParts(
  file: File,
  job: string,
  table: string,
  onSent: (bytes: number) => void,
  stop: AbortSignal,
): Promise<void> {
  const cuts: Cut[] = [];
  let last: Cut | null = null;
  while (!isComplete(file.size, last)) {
    last = await sendPart(file, `/jobs/${job}/tables/${table}/records/${cuts.length}`, last, stop);
    cuts.push(last);
    onSent(last.offset);
  }
  const names = new Blob(cuts.map((one) => `${one.digest}\n`));
  const end = {
    batches: cuts.length,
    bytes: cuts.reduce((sum, one) => sum + one.bytes, 0),
    digest: await digestOf(names, stop),
  };
  await patiently(() => send("PUT", `/jobs/${job}/tables/${table}/end`, end, stop), stop);
}

/** Sends one part, a larger one if no record ends in it. */
async function sendPart(
  file: File,
  path: string,
  before: Cut | null,
  stop: AbortSignal,
): Promise<Cut> {
  for (let wanted = PART; ; wanted *= 2) {
    const part = nextPart(file.size, before, wanted);
    const asked = new URLSearchParams({ source: "0", file: file.name, last: String(part.last) });
    if (before) {
      asked.set("offset", String(before.offset));
      asked.set("line", String(before.line));
    }
    const body = new Blob([file.slice(0, part.header), file.slice(part.from, part.to)]);
    const init = { method: "PUT", body, headers: { "content-type": "text/csv" }, signal: stop };
    try {
      const answer = await patiently(() => request(`${path}?${asked}`, init), stop);
      return (await answer.json()) as Cut;
    } catch (error) {
      const isShort = error instanceof ApiError && error.message.includes("send more at once");
      if (!isShort || part.last || wanted * 2 > MOST_PART) throw error;
    }
  }
}

/** Whether the same request may succeed later: refused only for now, or not answered. */
export function passes(error: unknown): boolean {
  return (
    error instanceof TypeError || (error instanceof ApiError && PASSING.includes(error.status))
  );
}

/** Repeats what passes, as late as the gateway says, for about a minute. */
export async function patiently<T>(ask: () => Promise<T>, stop: AbortSignal): Promise<T> {
  for (let waited = 0; ; ) {
    try {
      return await ask();
    } catch (error) {
      if (stop.aborted || !passes(error) || waited >= PATIENCE) throw error;
      const later = Math.max(1, error instanceof ApiError ? error.later : 0);
      const seconds = Math.min(later, PATIENCE - waited);
      await pause(1000 * seconds, stop);
      waited += seconds;
    }
  }
}

async function committed(
  job: string,
  onProgress: (progress: Progress) => void,
  stop: AbortSignal,
): Promise<Loaded> {
  const outcome = await ended(job, stop, (status) => {
    const [one] = Object.values(status.tables);
    if (one) onProgress({ step: "cleaned", done: one.mapped, all: one.batches ?? one.arrived });
  });
  if (outcome.state !== "done")
    throw new ApiError(422, "failed", `the load ${outcome.state}: ${outcome.reason}`);
  const path = `/jobs/${job}/results/load?offset=0&limit=1`;
  const [row] = await patiently(() => get<Row[]>(path, stop), stop);
  const version = Number(row?.version);
  if (row?.loaded === false) return nothing(version, `version ${version} loaded it`);
  return { version, rows: Number(row?.rows), rejected: Number(row?.rejected), skipped: "" };
}
