// Every process of the cluster, what waits, and strikes: kill one and watch it return.
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { get, said, send } from "./api.ts";
import { colour, Lines } from "./chart.tsx";
import type { Cluster, Health, Process, Sample } from "./kinds.ts";
import { usePolling } from "./polling.ts";
import { bytes, count, moment, seconds } from "./words.ts";

const LOOKS: Record<string, string> = {
  healthy: "good",
  starting: "warn",
  dead: "bad",
  failing: "bad",
  unattended: "bad",
};

interface Strike {
  process: string;
  incarnation: number;
  fault: "kill" | "freeze";
  at: number;
  healed: number | null; // seconds
}

/** Notes the time of recovery of every strike whose process runs again. */
export function healed(strikes: Strike[], processes: Process[], now: number): Strike[] {
  return strikes.map((one) => {
    if (one.healed !== null) return one;
    const found = processes.find((process) => process.name === one.process);
    const well = found && found.state === "healthy" && found.incarnation > one.incarnation;
    return well ? { ...one, healed: now - one.at } : one;
  });
}

/** The terms so far: when each leader was first seen. */
export function terms(samples: Sample[]): { term: number; leader: string; at: number }[] {
  const found: { term: number; leader: string; at: number }[] = [];
  for (const one of samples)
    if (one.leader && found.at(-1)?.term !== one.term)
      found.push({ term: one.term, leader: one.leader, at: one.at });
  return found;
}

/** Seconds of CPU per second, between two samples of the same incarnation. */
export function cpuOf(samples: Sample[], name: string): (number | null)[] {
  let before: { at: number; cpu: number; incarnation: number } | null = null;
  return samples.map((sample) => {
    const one = sample.processes.find((process) => process.name === name);
    if (!one) return null;
    const now = { at: sample.at, cpu: one.cpu ?? 0, incarnation: one.incarnation };
    const same = before && before.incarnation === now.incarnation && now.at > before.at;
    const share = same && before ? (now.cpu - before.cpu) / (now.at - before.at) : null;
    before = now;
    return share === null ? null : Math.max(0, share);
  });
}

const share = (value: number | null | undefined) =>
  value === null || value === undefined ? "" : `${Math.round(100 * value)} %`;

function Spark({
  values,
  kind,
  label,
}: {
  values: (number | null)[];
  kind: string;
  label: string;
}) {
  const known = values.slice(-60);
  const most = Math.max(...known.map((one) => one ?? 0), 1e-9);
  const path = known
    .map((one, place) =>
      one === null
        ? ""
        : `${place && known[place - 1] !== null ? "L" : "M"}${(place * 120) / Math.max(1, known.length - 1)} ${22 - (20 * one) / most}`,
    )
    .join("");
  return (
    <svg class={`spark ${kind}`} role="img" aria-label={label} viewBox="0 0 120 24">
      <path d={path} />
    </svg>
  );
}

function Service({ name, health }: { name: string; health: Health }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <span class={`state ${health.ok ? "good" : "bad"}`}>
          {health.ok ? `answers in ${seconds(health.seconds)}` : health.reason}
        </span>
      </dd>
    </div>
  );
}

export function ClusterView() {
  const cluster = useSignal<Cluster | null>(null);
  const samples = useSignal<Sample[]>([]);
  const strikes = useSignal<Strike[]>([]);
  const why = useSignal("");
  const waits = strikes.value.some((one) => one.healed === null);
  usePolling(
    async (stop) => {
      try {
        const found = await get<Cluster>("/cluster", stop);
        cluster.value = found;
        strikes.value = healed(strikes.value, found.processes, Date.now() / 1000);
        why.value = "";
      } catch (error) {
        if (!stop.aborted) why.value = said(error);
      }
    },
    waits ? 250 : 1000,
    [waits],
  );
  usePolling(
    async (stop) => {
      samples.value = (
        await get<{ samples: Sample[] }>("/cluster/history?seconds=900", stop)
      ).samples;
    },
    5000,
    [],
  );
  const times = useMemo(() => samples.value.map((one) => one.at), [samples.value]);
  const memory = useMemo(() => {
    const names = [
      ...new Set(samples.value.flatMap((one) => one.processes.map((process) => process.name))),
    ];
    const workers = names.filter((one) => one.startsWith("worker"));
    const colours = ["--map", "--fold", "--finish", "--merge", "--retry"];
    return workers.slice(0, 5).map((name, place) => ({
      label: name,
      colour: colour(colours[place] ?? "--dim"),
      values: samples.value.map((one) => {
        const found = one.processes.find((process) => process.name === name)?.memory;
        return found ? found / 1e6 : null;
      }),
    }));
  }, [samples.value]);
  const now = cluster.value;
  if (!now) return why.value ? <p class="notice bad">{why.value}</p> : <p class="dim">reading…</p>;
  const able = now.admin && now.chaos;
  const strike = async (victim: Process, fault: "kill" | "freeze") => {
    try {
      const body = { process: victim.name, incarnation: victim.incarnation, fault };
      const { at } = await send<{ at: number }>("POST", "/cluster/strikes", body);
      strikes.value = [{ ...body, at, healed: null }, ...strikes.value].slice(0, 20);
    } catch (error) {
      why.value = said(error);
    }
  };
  const random = () => {
    const well = now.processes.filter((one) => one.state === "healthy" && one.kind !== "broker");
    const victim = well[Math.floor(Math.random() * well.length)];
    if (victim) strike(victim, "kill");
  };
  const deepest = Math.max(1, ...Object.values(now.lanes));
  return (
    <>
      <div class="row">
        <h1>Cluster</h1>
        <span class="dim">seen by {now.gateway}</span>
        <span class="grow" />
        {able && (
          <button type="button" class="danger" onClick={random}>
            kill one at random
          </button>
        )}
      </div>
      {why.value && <p class="notice bad">{why.value}</p>}
      <dl class="facts" aria-label="the cluster">
        <div>
          <dt>leader</dt>
          <dd>{now.leader || "none"}</dd>
        </div>
        <div>
          <dt>term</dt>
          <dd>{now.term}</dd>
        </div>
        <Service name="store" health={now.store} />
        <Service name="broker" health={now.broker} />
      </dl>
      {!now.processes.length && (
        <p class="notice">No medic watches this gateway, so its processes are not known.</p>
      )}
      {now.admin && !now.chaos && now.processes.length > 0 && (
        <p class="dim small">
          With <code>chaos = true</code> in cluster.toml, processes can be killed here, to see them
          return.
        </p>
      )}
      <section class="card flush" aria-label="processes">
        <div class="scroll" role="region" aria-label="processes" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th>process</th>
                <th>state</th>
                <th>works on</th>
                <th class="num">incarnation</th>
                <th class="num">restarts</th>
                <th class="num">heard</th>
                <th class="num">progress</th>
                <th class="num">memory</th>
                <th class="num">CPU</th>
                <th>memory and CPU so far</th>
                <th>address</th>
                {able && <th class="held">strike</th>}
              </tr>
            </thead>
            <tbody>
              {now.processes.map((one) => (
                <tr key={one.name}>
                  <td>
                    {one.name} {one.name === now.leader && <span class="badge">leads</span>}
                  </td>
                  <td>
                    <span class={`state ${LOOKS[one.state] ?? ""}`}>{one.state}</span>
                  </td>
                  <td>
                    <span class="clip">{one.detail || (one.kind === "worker" ? "waits" : "")}</span>
                  </td>
                  <td class="num">{one.incarnation}</td>
                  <td class="num">{one.restarts}</td>
                  <td class="num">
                    {one.heard_seconds === null ? "never" : `${one.heard_seconds.toFixed(1)} s`}
                  </td>
                  <td class="num">{count(one.progress)}</td>
                  <td class="num">{one.memory ? bytes(one.memory) : ""}</td>
                  <td class="num">{share(cpuOf(samples.value, one.name).at(-1))}</td>
                  <td>
                    <span class="row" style={{ flexWrap: "nowrap" }}>
                      <Spark
                        kind="memory"
                        label={`memory of ${one.name}`}
                        values={samples.value.map(
                          (sample) =>
                            sample.processes.find((process) => process.name === one.name)?.memory ??
                            null,
                        )}
                      />
                      <Spark
                        kind="cpu"
                        label={`CPU of ${one.name}`}
                        values={cpuOf(samples.value, one.name)}
                      />
                    </span>
                  </td>
                  <td class="dim">{one.address}</td>
                  {able && (
                    <td class="held">
                      <span class="row" style={{ flexWrap: "nowrap" }}>
                        <button
                          type="button"
                          class="danger"
                          aria-label={`kill ${one.name}`}
                          disabled={one.state !== "healthy"}
                          onClick={() => strike(one, "kill")}
                        >
                          kill
                        </button>
                        <button
                          type="button"
                          aria-label={`freeze ${one.name}`}
                          disabled={one.state !== "healthy"}
                          onClick={() => strike(one, "freeze")}
                        >
                          freeze
                        </button>
                      </span>
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
      <div class="columns">
        <section class="card" aria-label="lanes">
          <h2>Tasks that wait</h2>
          <div class="bars">
            {Object.entries(now.lanes).flatMap(([name, depth]) => [
              <span key={`n${name}`}>{name}</span>,
              <span
                key={`b${name}`}
                class="bar"
                style={{ width: `${(100 * depth) / deepest}%` }}
              />,
              <span key={`d${name}`} class="num">
                {count(depth)}
              </span>,
            ])}
          </div>
        </section>
        {strikes.value.length > 0 && (
          <section class="card" aria-label="recoveries" aria-live="polite">
            <h2>Strikes</h2>
            <table>
              <tbody>
                {strikes.value.map((one) => (
                  <tr key={`${one.process} ${one.at}`}>
                    <td>{moment(one.at).slice(11)}</td>
                    <td>
                      {one.fault === "kill" ? "killed" : "froze"} {one.process}
                    </td>
                    <td class="num">
                      {one.healed === null ? (
                        <span class="state warn">recovers…</span>
                      ) : (
                        <span class="state good">well after {seconds(one.healed)}</span>
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </section>
        )}
        <section class="card" aria-label="terms">
          <h2>Leaders</h2>
          <table>
            <tbody>
              {terms(samples.value)
                .slice(-8)
                .reverse()
                .map((one) => (
                  <tr key={one.term}>
                    <td>term {one.term}</td>
                    <td>{one.leader}</td>
                    <td class="num dim">{moment(one.at).slice(11)}</td>
                  </tr>
                ))}
            </tbody>
          </table>
        </section>
      </div>
      {memory.length > 0 && times.length > 1 && (
        <section class="card" aria-label="memory of workers">
          <h2>Memory of workers</h2>
          <Lines x={times} series={memory} time={true} height={220} unit="MB" fromZero={true} />
        </section>
      )}
    </>
  );
}
