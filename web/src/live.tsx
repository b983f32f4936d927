// A job of the cluster, followed while it runs.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError, download, get, request, said, save, send } from "./api.ts";
import { filled } from "./filling.ts";
import { JobPage } from "./job.tsx";
import type {
  About,
  JobData,
  PlanGraph,
  ReportData,
  Row,
  RowSource,
  Sample,
  SoFar,
  Status,
  Task,
} from "./kinds.ts";
import { usePolling } from "./polling.ts";
import { read } from "./sse.ts";

const MOST_TASKS = 100_000;
const REPORTED_ROWS = 2000; // of each answer, in a report
const FORMS: [string, string, string][] = [
  ["JSON", "application/json", "json"],
  ["CSV", "text/csv", "csv"],
  ["Parquet", "application/vnd.apache.parquet", "parquet"],
  ["Arrow", "application/vnd.apache.arrow.stream", "arrow"],
];

async function opened(job: string, query: string): Promise<RowSource> {
  const path = `/jobs/${job}/results/${query}`;
  const about = await get<About>(`${path}/about`);
  return { about, rows: (offset, limit) => get<Row[]>(`${path}?offset=${offset}&limit=${limit}`) };
}

const identity = (one: Task) => `${one.worker} ${one.began} ${one.kind} ${one.name} ${one.number}`;

export function LiveJob({ job }: { job: string }) {
  const data = useSignal<JobData | null>(null);
  const rejects = useSignal<Row[] | null>(null);
  const why = useSignal("");
  const after = useSignal("");
  const change = (part: Partial<JobData>) => {
    if (data.value) data.value = { ...data.value, ...part };
  };
  const took = (status: Status) => {
    if (data.value && data.value.job === job) change({ status });
    else data.value = { job, status, plans: {}, tasks: [], samples: [] };
  };
  useEffect(() => {
    const stop = new AbortController();
    data.value = null;
    rejects.value = null;
    after.value = "";
    const follow = async () => {
      while (!stop.signal.aborted && !data.value?.status.outcome) {
        try {
          await read(
            `/jobs/${job}/events`,
            (event) => {
              if (event.name === "progress") took(JSON.parse(event.data) as Status);
              why.value = "";
            },
            stop.signal,
          );
        } catch (error) {
          if (stop.signal.aborted) return;
          why.value = said(error);
          if (error instanceof ApiError && error.status === 404) return;
        }
        await new Promise((done) => setTimeout(done, 500));
      }
    };
    follow();
    return () => stop.abort();
  }, [job]);
  const run = data.value?.status.run;
  const ended = Boolean(data.value?.status.outcome);
  useEffect(() => {
    if (!run) return;
    get<{ queries: Record<string, PlanGraph> }>(`/jobs/${job}/plan`).then(
      (found) => change({ plans: found.queries }),
      () => {},
    );
  }, [run]);
  usePolling(
    async (stop) => {
      if (!run) return;
      let more = true;
      while (more && (data.value?.tasks.length ?? 0) < MOST_TASKS) {
        const page = await get<{ tasks: Task[]; last: string; more: boolean }>(
          `/jobs/${job}/tasks?after=${after.value}`,
          stop,
        );
        const known = new Map((data.value?.tasks ?? []).map((one) => [identity(one), one]));
        for (const one of page.tasks) known.set(identity(one), one);
        after.value = page.more ? page.last : settled(page.last, after.value);
        if (known.size !== data.value?.tasks.length) change({ tasks: [...known.values()] });
        more = page.more;
      }
    },
    ended ? 5000 : 2500,
    [run, ended],
  );
  usePolling(
    async (stop) => {
      const found = await get<{ samples: Sample[] }>("/cluster/history?seconds=3600", stop);
      const from = (data.value?.status.created ?? 0) - 10;
      const to = data.value?.status.outcome
        ? data.value.status.outcome.at + 10
        : Number.POSITIVE_INFINITY;
      change({ samples: found.samples.filter((one) => one.at >= from && one.at <= to) });
    },
    ended ? 60_000 : 10_000,
    [run, ended],
  );
  const reported = data.value?.status.results.includes("rejects");
  useEffect(() => {
    if (reported)
      get<Row[]>(`/jobs/${job}/rejects`).then(
        (rows) => {
          rejects.value = rows;
        },
        () => {},
      );
  }, [reported, run]);
  if (!data.value)
    return why.value ? <p class="notice bad">{why.value}</p> : <p class="dim">reading…</p>;
  const cancel = async () => {
    if (!confirm(`Cancel job ${job}? Its client gets no answers.`)) return;
    await send("DELETE", `/jobs/${job}`).catch((error) => {
      why.value = said(error);
    });
  };
  const report = async () => {
    const whole = data.value;
    if (!whole) return;
    try {
      const page = await (await request("/page/report.html")).text();
      const text = filled(page, await gathered(whole, rejects.value ?? []));
      save(new Blob([text], { type: "text/html" }), `caudal-${job}.html`);
    } catch (error) {
      why.value = said(error);
    }
  };
  return (
    <>
      {why.value && <p class="notice bad">{why.value}</p>}
      <JobPage
        data={data.value}
        open={(query) => opened(job, query)}
        soFar={(query, after, stop) =>
          get<SoFar>(`/jobs/${job}/results/${query}/so-far?after=${after}`, stop)
        }
        rejects={rejects.value}
        actions={
          <span class="row">
            <button type="button" onClick={report}>
              save report
            </button>
            {!ended && (
              <button type="button" class="danger" onClick={cancel}>
                cancel
              </button>
            )}
          </span>
        }
        downloads={(query) => (
          <span class="row">
            {FORMS.map(([name, accept, ending]) => (
              <button
                type="button"
                key={name}
                onClick={() =>
                  download(`/jobs/${job}/results/${query}`, accept, `${query}.${ending}`).catch(
                    (error) => {
                      why.value = said(error);
                    },
                  )
                }
              >
                {name}
              </button>
            ))}
          </span>
        )}
      />
    </>
  );
}

/** Facts of a slow worker may get an earlier key than what was read: look ten seconds back. */
export function settled(last: string, before: string): string {
  const at = Number(last.slice(0, 13)) - 10_000;
  const back = String(Math.max(0, at)).padStart(13, "0");
  return back > before ? back : before;
}

async function gathered(data: JobData, rejects: Row[]): Promise<ReportData> {
  const results: ReportData["results"] = {};
  for (const query of data.status.queries) {
    if (!data.status.results.includes(query) || data.status.failed[query]) continue;
    const source = await opened(data.job, query);
    results[query] = { about: source.about, rows: await source.rows(0, REPORTED_ROWS) };
  }
  return { ...data, made: Date.now() / 1000, results, rejects };
}
