// What every worker did when: one lane per worker, zoomed with the wheel, buttons or keys.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { colour } from "./chart.tsx";
import type { Sample, Task } from "./kinds.ts";
import { bytes, count, seconds } from "./words.ts";

const LANE = 30;
const HEAD = 22;
const NAMES = 110;

export interface Mark {
  worker: string;
  at: number;
  what: string;
}

/** Deaths and restarts, from samples: a state that is not healthy, or a newer incarnation. */
export function marks(samples: Sample[], workers: Set<string>): Mark[] {
  const last = new Map<string, { incarnation: number; state: string }>();
  const found: Mark[] = [];
  for (const sample of samples) {
    for (const one of sample.processes) {
      if (!workers.has(one.name)) continue;
      const before = last.get(one.name);
      if (before && one.incarnation > before.incarnation)
        found.push({
          worker: one.name,
          at: sample.at,
          what: `restarted as incarnation ${one.incarnation}`,
        });
      else if (before?.state === "healthy" && one.state === "dead")
        found.push({ worker: one.name, at: sample.at, what: "died" });
      last.set(one.name, one);
    }
  }
  return found;
}

export function look(task: Task): string {
  if (task.end === "adopted") return "adopted";
  if (task.end === "failed" || task.end === "handed back" || (task.deliveries ?? 1) > 1)
    return "retry";
  return task.kind;
}

interface View {
  from: number;
  to: number;
}

export function Timeline({ tasks, samples }: { tasks: Task[]; samples: Sample[] }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [zoom, setZoom] = useState<View | null>(null);
  const [near, setNear] = useState<Task | null>(null);
  const [width, setWidth] = useState(900);
  const workers = useMemo(() => [...new Set(tasks.map((one) => one.worker))].sort(), [tasks]);
  const deaths = useMemo(() => marks(samples, new Set(workers)), [samples, workers]);
  const whole = useMemo(() => {
    let from = Number.POSITIVE_INFINITY;
    let to = 0;
    for (const one of tasks) {
      from = Math.min(from, one.began);
      to = Math.max(to, one.ended);
    }
    return { from, to: Math.max(to, from + 0.1) };
  }, [tasks]);
  const view = zoom ?? whole;
  const height = HEAD + workers.length * LANE;
  const x = (at: number) =>
    NAMES + ((at - view.from) / (view.to - view.from)) * (width - NAMES - 8);
  useEffect(() => {
    const place = canvas.current?.parentElement;
    if (!place) return;
    const watch = new ResizeObserver(() => setWidth(Math.max(280, place.clientWidth)));
    watch.observe(place);
    return () => watch.disconnect();
  }, [workers.length > 0]);
  useEffect(() => {
    const sheet = canvas.current;
    const pen = sheet?.getContext("2d");
    if (!sheet || !pen) return;
    const ratio = devicePixelRatio || 1;
    sheet.width = width * ratio;
    sheet.height = height * ratio;
    pen.scale(ratio, ratio);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.fillStyle = colour("--dim");
    const step = tick((view.to - view.from) / Math.max(2, width / 130));
    for (let at = 0; at <= view.to - whole.from; at += step) {
      const left = x(whole.from + at);
      if (left < NAMES) continue;
      pen.fillStyle = colour("--soft");
      pen.fillRect(left, HEAD, 1, height);
      pen.fillStyle = colour("--dim");
      pen.fillText(at === 0 ? "0 s" : seconds(at).replace(".0 s", " s"), left + 3, HEAD / 2);
    }
    workers.forEach((name, lane) => {
      pen.fillStyle = colour("--ink");
      pen.fillText(
        name.length > 15 ? `${name.slice(0, 14)}…` : name,
        2,
        HEAD + lane * LANE + LANE / 2,
      );
      pen.fillStyle = colour("--soft");
      pen.fillRect(0, HEAD + lane * LANE, width, 1);
    });
    const lanes = new Map(workers.map((name, lane) => [name, lane]));
    for (const task of tasks) {
      if (task.ended < view.from || task.began > view.to) continue;
      const left = Math.max(NAMES, x(task.began));
      const right = Math.min(width - 8, x(task.ended));
      pen.fillStyle = colour(`--${look(task)}`);
      pen.fillRect(
        left,
        HEAD + (lanes.get(task.worker) ?? 0) * LANE + 5,
        Math.max(1.5, right - left),
        LANE - 10,
      );
    }
    pen.fillStyle = colour("--bad");
    for (const mark of deaths) {
      const left = x(mark.at);
      if (left >= NAMES && left <= width)
        pen.fillRect(left - 1, HEAD + (lanes.get(mark.worker) ?? 0) * LANE, 3, LANE);
    }
  }, [tasks, view.from, view.to, width, height, workers, deaths]);
  const scale = (factor: number, share = 0.5) => {
    const size = (view.to - view.from) * factor;
    const centre = view.from + (view.to - view.from) * share;
    const from = Math.max(whole.from, centre - size * share);
    setZoom(size >= whole.to - whole.from ? null : { from, to: from + Math.max(size, 0.002) });
  };
  const slide = (share: number) => {
    const by = (view.to - view.from) * share;
    setZoom({ from: view.from + by, to: view.to + by });
  };
  const keys: Record<string, () => void> = {
    "+": () => scale(0.5),
    "-": () => scale(2),
    "0": () => setZoom(null),
    ArrowLeft: () => slide(-0.2),
    ArrowRight: () => slide(0.2),
  };
  if (!tasks.length)
    return <p class="dim">No task is known yet. Workers write what they did every two seconds.</p>;
  return (
    <div>
      <div class="row" style={{ marginBottom: ".5rem" }}>
        <button type="button" aria-label="zoom in" onClick={() => scale(0.5)}>
          +
        </button>
        <button type="button" aria-label="zoom out" onClick={() => scale(2)}>
          −
        </button>
        <button type="button" disabled={!zoom} onClick={() => setZoom(null)}>
          all
        </button>
        <span class="legend">
          {["map", "merge", "fold", "finish", "retry", "adopted"].map((one) => (
            <span key={one}>
              <i class={one} />
              {one}
            </span>
          ))}
          <span>
            <i class="mark" />
            killed or restarted
          </span>
        </span>
      </div>
      <canvas
        ref={canvas}
        class="timeline"
        style={{ height: `${height}px` }}
        role="img"
        tabIndex={0}
        aria-label={`${count(tasks.length)} tasks of ${workers.length} workers in ${seconds(whole.to - whole.from)}, ${deaths.length} deaths or restarts; + and - zoom, arrows move`}
        onKeyDown={(event) => {
          const act = keys[event.key];
          if (act) {
            event.preventDefault();
            act();
          }
        }}
        onWheel={(event) => {
          if (!event.ctrlKey && !event.shiftKey) return;
          event.preventDefault();
          scale(event.deltaY < 0 ? 0.8 : 1.25, (event.offsetX - NAMES) / (width - NAMES));
        }}
        onMouseMove={(event) => {
          const lane = workers[Math.floor((event.offsetY - HEAD) / LANE)];
          const at =
            view.from + ((event.offsetX - NAMES) / (width - NAMES - 8)) * (view.to - view.from);
          const slack = ((view.to - view.from) / width) * 3;
          setNear(
            tasks.find(
              (one) => one.worker === lane && one.began - slack <= at && at <= one.ended + slack,
            ) ?? null,
          );
        }}
        onMouseLeave={() => setNear(null)}
      />
      <p class="small dim" style={{ minHeight: "1.4em", margin: ".3rem 0 0" }}>
        {near ? told(near) : "Point at a task to see what it was. Shift and the wheel zoom."}
      </p>
    </div>
  );
}

function told(task: Task): string {
  const size = `${bytes(task.bytes_in ?? 0)} in, ${bytes(task.bytes_out ?? 0)} out`;
  const again = (task.deliveries ?? 1) > 1 ? `, delivery ${task.deliveries}` : "";
  const why = task.reason ? `: ${task.reason}` : "";
  return `${task.kind} ${task.name} ${task.number}, ${task.worker}, ${seconds(task.ended - task.began)}, ${size}, ${task.end}${again}${why}`;
}

/** The next round number of seconds. */
export function tick(least: number): number {
  const base = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((one) => one * base).find((one) => one >= least) ?? 10 * base;
}
