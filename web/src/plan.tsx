// The plan of a query as a graph, with rows and bytes on its edges and a panel beside it.
import dagre from "@dagrejs/dagre";
import { useMemo, useState } from "preact/hooks";
import type { PlanGraph, PlanNode, Task } from "./kinds.ts";
import { bytes, count, seconds } from "./words.ts";

const LINE = 16;
const MOST = 34; // characters of a line in a node
const LETTER = 6.2; // mean width of a letter of a label
const LABEL = 14; // height of a line of a label
const SUM = 26; // characters of `1,234,567 rows, 123 MB`, and some between two of them

export interface StageSum {
  rows: number;
  bytes: number;
  tasks: number;
  seconds: number;
}

/** Adds up what tasks say about each stage. A map makes several stages, so they share its time. */
export function sums(tasks: Task[]): Map<string, StageSum> {
  const found = new Map<string, StageSum>();
  for (const task of tasks) {
    for (const [stage, [rows, size]] of Object.entries(task.stages ?? {})) {
      const sum = found.get(stage) ?? { rows: 0, bytes: 0, tasks: 0, seconds: 0 };
      sum.rows += rows;
      sum.bytes += size;
      sum.tasks += 1;
      sum.seconds += task.ended - task.began;
      found.set(stage, sum);
    }
  }
  return found;
}

const cut = (line: string) => (line.length > MOST ? `${line.slice(0, MOST - 1)}…` : line);

const wide = (lines: string[]) => Math.max(...lines.map((one) => cut(one).length));

function layout(graph: PlanGraph) {
  const drawn = new dagre.graphlib.Graph({ multigraph: true });
  drawn.setGraph({ rankdir: "TB", nodesep: 28, ranksep: 46, marginx: 12, marginy: 12 });
  drawn.setDefaultEdgeLabel(() => ({}));
  for (const node of graph.nodes) {
    const lines = node.lines.filter(Boolean).slice(0, 3).map(cut);
    const width = Math.max(90, ...lines.map((one) => one.length * 6.6 + 24));
    drawn.setNode(node.name, { width, height: lines.length * LINE + 14 });
  }
  graph.edges.forEach((edge, place) => {
    const width = LETTER * Math.min(MOST, Math.max(edge.label.length, edge.dotted ? 0 : SUM));
    const label = { width, height: LABEL * (edge.label && !edge.dotted ? 2 : 1), labelpos: "c" };
    drawn.setEdge(edge.source, edge.target, label, String(place));
  });
  dagre.layout(drawn);
  return drawn;
}

function told(sum: StageSum | undefined): string {
  return sum ? `${count(sum.rows)} rows, ${bytes(sum.bytes)}` : "";
}

export function Plan({
  graph,
  tasks,
  busy,
}: {
  graph: PlanGraph;
  tasks: Task[];
  busy: Set<string>;
}) {
  const [chosen, setChosen] = useState<string>("");
  const drawn = useMemo(() => layout(graph), [graph]);
  const stages = useMemo(() => sums(tasks), [tasks]);
  const { width = 300, height = 200 } = drawn.graph();
  const by = new Map(graph.nodes.map((node) => [node.name, node]));
  const node = by.get(chosen) ?? graph.nodes.find((one) => one.shape === "answer");
  const pick = (name: string) => (event: Event) => {
    if (event instanceof KeyboardEvent && event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    setChosen(name);
  };
  return (
    <div class="plan">
      <div class="drawing">
        <svg width={width} height={height} role="group" aria-label={`plan: ${graph.title}`}>
          <defs>
            <marker
              id="tip"
              viewBox="0 0 8 8"
              refX="7"
              refY="4"
              markerWidth="7"
              markerHeight="7"
              orient="auto"
            >
              <path d="M0 0L8 4L0 8z" fill="currentColor" opacity=".6" />
            </marker>
          </defs>
          {graph.edges.map((edge, place) => {
            const line = drawn.edge({ v: edge.source, w: edge.target, name: String(place) });
            const points = line.points.map((one: { x: number; y: number }) => `${one.x} ${one.y}`);
            const sum = told(stages.get(by.get(edge.source)?.stage ?? ""));
            const label = [edge.label, edge.dotted ? "" : sum].filter(Boolean);
            return (
              <g key={`${edge.source} ${edge.target} ${place}`}>
                <path
                  class={edge.dotted ? "edge dotted" : "edge"}
                  d={`M${points.join("L")}`}
                  marker-end="url(#tip)"
                />
                {label.length > 0 && (
                  <rect
                    class="ground"
                    x={(line.x ?? 0) - (LETTER * wide(label)) / 2 - 3}
                    y={(line.y ?? 0) - (label.length * LABEL) / 2}
                    width={LETTER * wide(label) + 6}
                    height={label.length * LABEL}
                  />
                )}
                {label.map((text, row) => (
                  <text
                    key={text}
                    class="label"
                    x={line.x}
                    y={(line.y ?? 0) + (row - (label.length - 1) / 2) * LABEL + 4}
                    text-anchor="middle"
                  >
                    {cut(text)}
                  </text>
                ))}
              </g>
            );
          })}
          {graph.nodes.map((one) => {
            const box = drawn.node(one.name);
            const lines = one.lines.filter(Boolean).slice(0, 3);
            const left = (box.x ?? 0) - box.width / 2;
            const up = (box.y ?? 0) - box.height / 2;
            return (
              <g
                key={one.name}
                class={`node ${one.shape} ${busy.has(one.stage) ? "busy" : ""}`}
                role="button"
                tabindex={0}
                aria-pressed={node?.name === one.name}
                onClick={pick(one.name)}
                onKeyDown={pick(one.name)}
              >
                <rect
                  x={left}
                  y={up}
                  width={box.width}
                  height={box.height}
                  rx={one.shape === "step" ? 5 : 12}
                />
                {lines.map((line, row) => (
                  <text
                    key={line}
                    class={row ? "" : "first"}
                    x={box.x}
                    y={up + 20 + row * LINE}
                    text-anchor="middle"
                  >
                    {cut(line)}
                  </text>
                ))}
              </g>
            );
          })}
        </svg>
      </div>
      {node && <Side node={node} sum={stages.get(node.stage)} />}
    </div>
  );
}

function Side({ node, sum }: { node: PlanNode; sum: StageSum | undefined }) {
  return (
    <aside class="side" aria-label="the chosen step" tabIndex={0}>
      <h3>{node.lines[0]}</h3>
      {node.lines.slice(1).map((line) => (
        <p key={line} class="small" style={{ margin: ".1rem 0" }}>
          {line}
        </p>
      ))}
      {node.group && <p class="dim small">{node.group}</p>}
      {sum && (
        <dl class="facts small">
          <div>
            <dt>tasks</dt>
            <dd>{count(sum.tasks)}</dd>
          </div>
          <div>
            <dt>rows</dt>
            <dd>{count(sum.rows)}</dd>
          </div>
          <div>
            <dt>size</dt>
            <dd>{bytes(sum.bytes)}</dd>
          </div>
          <div>
            <dt>time</dt>
            <dd>{seconds(sum.seconds)}</dd>
          </div>
        </dl>
      )}
      {node.sql && (
        <>
          <h3 style={{ marginTop: ".8rem" }}>SQL</h3>
          <pre>{node.sql}</pre>
        </>
      )}
    </aside>
  );
}
