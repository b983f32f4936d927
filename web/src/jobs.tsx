// All jobs of the owner: errors first if wanted, filters in the address.
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { get, said, send } from "./api.ts";
import type { JobEntry, Row, State, Status, Task } from "./kinds.ts";
import { usePolling } from "./polling.ts";
import { choose, chooseAll, option } from "./route.ts";
import { VirtualTable } from "./virtual.tsx";
import { ago, count, moment } from "./words.ts";

const LOOKS: Record<State, string> = {
  running: "busy",
  done: "good",
  failed: "bad",
  cancelled: "",
  expired: "warn",
};
const MOST_DETAILS = 12; // jobs whose progress is asked for at a time

export function StateMark({ state, failed }: { state: State; failed: number }) {
  const look = state === "done" && failed ? "warn" : LOOKS[state];
  return (
    <span class={`state ${look}`}>
      {state}
      {failed ? `, ${failed} ${failed === 1 ? "query" : "queries"} failed` : ""}
    </span>
  );
}

export function filtered(jobs: JobEntry[], state: string, text: string, order: string): JobEntry[] {
  const wanted = text.toLowerCase();
  const kept = jobs.filter(
    (one) =>
      (!state || one.state === state || (state === "errors" && isBad(one))) &&
      (!wanted || `${one.id} ${one.application}`.toLowerCase().includes(wanted)),
  );
  const rank = (one: JobEntry) => (order === "errors" && isBad(one) ? 0 : 1);
  return kept.sort((a, b) => rank(a) - rank(b) || b.created - a.created);
}

const isBad = (one: JobEntry) =>
  one.state === "failed" || one.state === "expired" || one.failed.length > 0;

/** How far a job is: mapped batches of those that arrived, then folds, then answers. */
export function progress(status: Status): number {
  if (status.outcome) return 1;
  const tables = Object.values(status.tables);
  const arrived = tables.reduce((sum, one) => sum + (one.batches ?? one.arrived + 1), 0);
  const mapped = tables.reduce((sum, one) => sum + one.mapped, 0);
  const folds = Object.values(status.folds);
  const folded = folds.reduce((sum, [done]) => sum + done, 0);
  const all = folds.reduce((sum, [, most]) => sum + most, 0);
  const answers = status.queries.filter((one) => status.results.includes(one)).length;
  const parts = [
    mapped / Math.max(1, arrived),
    all ? folded / all : 1,
    answers / Math.max(1, status.queries.length),
  ];
  return (parts[0] as number) * 0.7 + (parts[1] as number) * 0.2 + (parts[2] as number) * 0.1;
}

/** What a job answers. One without queries loads into a dataset. */
export function asked(status: Status): string {
  return status.queries.join(", ") || ("load" in status.reads ? "a load" : "");
}

export interface Detail {
  status: Status;
  rowsPerSecond: number | null;
  rejects: number | null;
}

/** Rows that maps gave to their scans, per second between the first and the last of them. */
export function rowsPerSecond(tasks: Task[]): number | null {
  const maps = tasks.filter((one) => one.kind === "map" && one.stages);
  if (!maps.length) return null;
  const rows = maps.reduce(
    (sum, one) => sum + Math.max(0, ...Object.values(one.stages ?? {}).map(([number]) => number)),
    0,
  );
  const from = Math.min(...maps.map((one) => one.began));
  const to = Math.max(...maps.map((one) => one.ended));
  return rows / Math.max(0.001, to - from);
}

async function detailOf(job: JobEntry, stop: AbortSignal): Promise<Detail> {
  const status = await get<Status>(`/jobs/${job.id}?quiet=true`, stop);
  const tasks = await get<{ tasks: Task[] }>(`/jobs/${job.id}/tasks`, stop);
  let rejects: number | null = null;
  if (status.results.includes("rejects")) {
    const rows = await get<Row[]>(`/jobs/${job.id}/rejects`, stop);
    rejects = rows.reduce((sum, row) => sum + (row.reason === null ? 0 : Number(row.rows)), 0);
  }
  return { status, rowsPerSecond: rowsPerSecond(tasks.tasks), rejects };
}

export function Jobs() {
  const jobs = useSignal<JobEntry[] | null>(null);
  const details = useSignal(new Map<string, Detail>());
  const why = useSignal("");
  const sight = useSignal({ first: 0, last: 20 });
  usePolling(
    async (stop) => {
      try {
        const found: JobEntry[] = [];
        let after = "";
        do {
          const page = await get<{ jobs: JobEntry[]; next: string | null }>(
            `/jobs?limit=1000&after=${after}`,
            stop,
          );
          found.push(...page.jobs);
          after = page.next ?? "";
          if (!jobs.value || found.length > jobs.value.length) jobs.value = [...found];
        } while (after);
        jobs.value = found;
        why.value = "";
        if (found.length > 2000) await new Promise((done) => setTimeout(done, 15_000));
      } catch (error) {
        if (!stop.aborted) why.value = said(error);
      }
    },
    2000,
    [],
  );
  const state = option("state");
  const text = option("text");
  const order = option("order");
  const shownJobs = useMemo(
    () => filtered(jobs.value ?? [], state, text, order),
    [jobs.value, state, text, order],
  );
  usePolling(
    async (stop) => {
      const seen = shownJobs.slice(sight.value.first, sight.value.last);
      const wanted = seen.filter(
        (one) => one.state === "running" || !details.value.get(one.id)?.status.outcome,
      );
      for (const one of wanted.slice(0, MOST_DETAILS)) {
        const found = await detailOf(one, stop).catch(() => null);
        if (stop.aborted) return;
        if (found) details.value = new Map(details.value).set(one.id, found);
      }
    },
    1500,
    [shownJobs, sight.value.first],
  );
  const cancel = async (job: JobEntry) => {
    if (!confirm(`Cancel job ${job.id}? Its client gets no answers.`)) return;
    try {
      await send("DELETE", `/jobs/${job.id}`);
    } catch (error) {
      why.value = said(error);
    }
  };
  return (
    <>
      <div class="row">
        <h1>Jobs</h1>
        <span class="dim">{jobs.value ? count(jobs.value.length) : "reading…"}</span>
        <span class="grow" />
        <label class="field">
          state
          <select value={state} onChange={(event) => choose("state", event.currentTarget.value)}>
            <option value="">all</option>
            <option value="errors">errors only</option>
            {Object.keys(LOOKS).map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <label class="field">
          order
          <select value={order} onChange={(event) => choose("order", event.currentTarget.value)}>
            <option value="">newest first</option>
            <option value="errors">errors first</option>
          </select>
        </label>
        <label class="field">
          find
          <input
            type="search"
            value={text}
            onInput={(event) => choose("text", event.currentTarget.value)}
          />
        </label>
      </div>
      {why.value && <p class="notice bad">{why.value}</p>}
      {jobs.value?.length === 0 && (
        <p class="notice">
          There is no job yet.{" "}
          <code>caudal submit books --data data --gateway {location.origin}</code> sends one.
        </p>
      )}
      {jobs.value && jobs.value.length > 0 && !shownJobs.length && (
        <p class="notice">
          No job is like that.{" "}
          <button type="button" onClick={() => chooseAll({ state: "", text: "" })}>
            show all {count(jobs.value.length)}
          </button>
        </p>
      )}
      <div class="card flush" hidden={!shownJobs.length}>
        <VirtualTable
          rows={shownJobs.length}
          columns={9}
          label="jobs"
          most={720}
          onSpan={(span) => {
            sight.value = span;
          }}
          head={
            <tr>
              <th>job</th>
              <th>state</th>
              <th>application</th>
              <th>queries</th>
              <th>progress</th>
              <th class="num">rows / s</th>
              <th class="num">rejects</th>
              <th>created</th>
              <th>
                <span class="unseen">actions</span>
              </th>
            </tr>
          }
          row={(place) => {
            const job = shownJobs[place];
            if (!job) return null;
            const detail = details.value.get(job.id);
            const share = detail ? progress(detail.status) : job.state === "running" ? 0 : 1;
            return (
              <tr key={job.id} aria-rowindex={place + 2}>
                <td>
                  <a class="mono" href={`#/jobs/${job.id}`}>
                    {job.id.length > 16 ? `${job.id.slice(0, 12)}…` : job.id}
                  </a>
                </td>
                <td>
                  <StateMark state={job.state} failed={job.failed.length} />
                </td>
                <td>
                  <span class="clip narrow" dir="auto" title={job.application}>
                    {job.application}
                  </span>
                </td>
                <td>
                  <span class="clip narrow" dir="auto" title={detail?.status.queries.join(", ")}>
                    {detail && asked(detail.status)}
                  </span>
                </td>
                <td style={{ minWidth: "7rem" }}>
                  <div
                    class="track"
                    role="progressbar"
                    aria-label={`progress of ${job.id}`}
                    aria-valuenow={Math.round(100 * share)}
                    aria-valuemin={0}
                    aria-valuemax={100}
                  >
                    <i
                      class={job.state === "running" ? "" : "done"}
                      style={{ width: `${100 * share}%` }}
                    />
                  </div>
                </td>
                <td class="num">
                  {detail?.rowsPerSecond ? count(Math.round(detail.rowsPerSecond)) : ""}
                </td>
                <td class="num">{detail?.rejects != null ? count(detail.rejects) : ""}</td>
                <td title={moment(job.created)}>{ago(job.created)}</td>
                <td>
                  {job.state === "running" && (
                    <button
                      type="button"
                      class="danger"
                      onClick={() => cancel(job)}
                      aria-label={`cancel ${job.id}`}
                    >
                      cancel
                    </button>
                  )}
                </td>
              </tr>
            );
          }}
        />
      </div>
    </>
  );
}
