// A chart of an answer: bars, a line or a histogram, chosen by the types of the columns.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { said } from "./api.ts";
import { asNumber, bins, type Chart, chosenChart, isNumber, KINDS, numbers } from "./charts.ts";
import type { Row, RowSource } from "./kinds.ts";
import { chooseAll, option } from "./route.ts";
import { count, shown } from "./words.ts";

const MOST_ROWS = 5000;
const MOST_BARS = 40;

export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "#888";
}

function Bars({ rows, chart }: { rows: Row[]; chart: Chart }) {
  const some = rows.slice(0, MOST_BARS);
  const values = some.map((row) => asNumber(row[chart.y]) || 0);
  const most = Math.max(...values.map(Math.abs), 1e-300);
  return (
    <div>
      <Axes along={chart.x} of={chart.y} />
      <div class="bars" role="img" aria-label={`${chart.y} by ${chart.x}`}>
        {some.flatMap((row, place) => [
          <span class="what" key={`w${place}`} dir="auto" title={shown(row[chart.x])}>
            {shown(row[chart.x])}
          </span>,
          <span
            key={`b${place}`}
            class={(values[place] ?? 0) < 0 ? "bar minus" : "bar"}
            style={{ width: `${(100 * Math.abs(values[place] ?? 0)) / most}%` }}
          />,
          <span class="num" key={`n${place}`}>
            {shown(row[chart.y])}
          </span>,
        ])}
      </div>
      {rows.length > MOST_BARS && <p class="dim small">the first {MOST_BARS} rows</p>}
    </div>
  );
}

function Axes({ along, of }: { along: string; of: string }) {
  return (
    <div class="row small dim axes" aria-hidden="true">
      <span dir="auto">{along}</span>
      <span class="grow" />
      <span dir="auto">{of}</span>
    </div>
  );
}

function Histogram({ rows, chart }: { rows: Row[]; chart: Chart }) {
  const found = bins(numbers(rows, chart.y));
  const most = Math.max(...found.map((one) => one.count), 1);
  const [first, last] = [found[0], found.at(-1)];
  return (
    <div>
      <div class="small dim axes">rows, up to {count(most)}</div>
      <div class="columns-chart" role="img" aria-label={`how often each ${chart.y} occurs`}>
        {found.map((one) => (
          <i
            key={one.from}
            title={`${shown(one.from)} to ${shown(one.to)}: ${count(one.count)}`}
            style={{ height: `${(100 * one.count) / most}%` }}
          />
        ))}
      </div>
      <div class="row small dim">
        <span>{first ? shown(first.from) : ""}</span>
        <span class="grow" />
        <span dir="auto">{chart.y}</span>
        <span class="grow" />
        <span>{last ? shown(last.to) : ""}</span>
      </div>
    </div>
  );
}

export interface Series {
  label: string;
  colour: string;
  values: (number | null)[];
}

const HOUR = "{HH}:{mm}";
// How uPlot writes times: from a year to a millisecond, with 24 hours and ISO days.
const TIMES: uPlot.Axis.Values = [
  [31_536_000, "{YYYY}", null, null, null, null, null, null, 1],
  [86_400, "{YYYY}-{MM}-{DD}", null, null, null, null, null, null, 1],
  [60, HOUR, "\n{YYYY}-{MM}-{DD}", null, "\n{YYYY}-{MM}-{DD}", null, null, null, 1],
  [1, `${HOUR}:{ss}`, "\n{YYYY}-{MM}-{DD}", null, "\n{YYYY}-{MM}-{DD}", null, null, null, 1],
  [0.001, `${HOUR}:{ss}.{fff}`, "\n{YYYY}-{MM}-{DD}", null, null, null, null, null, 1],
];
const DAY = "{YYYY}-{MM}-{DD}";
const AT = `${DAY} {HH}:{mm}:{ss}`;

/** A line chart. `x` must grow. */
export function Lines(props: {
  x: number[];
  series: Series[];
  time: boolean;
  height?: number;
  utc?: boolean; // times are days, not moments of this place
  along?: string; // name of x
  unit?: string; // of the values
  fromZero?: boolean;
}) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const place = box.current;
    if (!place) return;
    const axis = {
      stroke: colour("--dim"),
      grid: { stroke: colour("--soft") },
      ticks: { show: false },
    };
    const plot = new uPlot(
      {
        width: Math.max(200, place.clientWidth),
        height: props.height ?? 240,
        ...(props.utc ? { tzDate: (at: number) => uPlot.tzDate(new Date(at * 1000), "UTC") } : {}),
        scales: {
          x: { time: props.time },
          y: props.fromZero ? { range: (_, __, most) => [0, Math.max(most * 1.1, 1)] } : {},
        },
        axes: [
          {
            ...axis,
            ...(props.along ? { label: props.along, labelSize: 22 } : {}),
            space: props.time ? 90 : 60,
            values: props.time ? TIMES : (_, ticks) => ticks.map((one) => String(one)),
          },
          {
            ...axis,
            size: 60,
            ...(props.unit ? { label: props.unit, labelSize: 22 } : {}),
          },
        ],
        series: [
          { label: props.along ?? "at", ...(props.time ? { value: props.utc ? DAY : AT } : {}) },
          ...props.series.map((one) => ({
            label: one.label,
            stroke: one.colour,
            width: 1.6,
            spanGaps: true,
            points: { show: props.x.length < 60 },
          })),
        ],
      },
      [props.x, ...props.series.map((one) => one.values)],
      place,
    );
    const watch = new ResizeObserver(() =>
      plot.setSize({ width: Math.max(200, place.clientWidth), height: props.height ?? 240 }),
    );
    watch.observe(place);
    return () => {
      watch.disconnect();
      plot.destroy();
    };
  }, [props.x, props.series, props.time, props.height, props.along, props.unit]);
  const names = props.series.map((one) => one.label).join(", ");
  return <div class="plot" ref={box} role="img" aria-label={`lines of ${names}`} />;
}

function LineChart({ rows, chart, type }: { rows: Row[]; chart: Chart; type: string }) {
  const time = /^(date|timestamp)/.test(type);
  const points = rows
    .map((row) => [asNumber(row[chart.x]), asNumber(row[chart.y])] as const)
    .filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y))
    .sort((a, b) => a[0] - b[0]);
  const series = [
    { label: chart.y, colour: colour("--accent"), values: points.map((one) => one[1]) },
  ];
  const x = points.map((one) => one[0]);
  const isDay = type.startsWith("date");
  return <Lines x={x} series={series} time={time} utc={isDay} along={chart.x} unit={chart.y} />;
}

const kept = ({ kind, x, y }: Chart) => ({ chart: kind, x, y });

export function ChartView({ source }: { source: RowSource }) {
  const { columns } = source.about;
  const chart = chosenChart(columns, option("chart"), option("x"), option("y"));
  const [rows, setRows] = useState<Row[] | null>(null);
  const [why, setWhy] = useState("");
  useEffect(() => {
    setRows(null);
    source.rows(0, MOST_ROWS).then(setRows, (error) => setWhy(said(error)));
  }, [source]);
  if (why) return <p class="notice bad">{why}</p>;
  if (!chart)
    return <p class="dim">No column of this answer is a number: there is nothing to draw.</p>;
  if (!rows) return <p class="dim">reading…</p>;
  const measures = columns.filter(isNumber);
  const type = columns.find((one) => one.name === chart.x)?.type ?? "";
  return (
    <div>
      <div class="row" style={{ marginBottom: ".8rem" }}>
        <label class="field">
          chart
          <select
            value={chart.kind}
            onChange={(event) => {
              const kind = event.currentTarget.value;
              chooseAll({ chart: kind, x: chart.x || (columns[0]?.name ?? ""), y: chart.y });
            }}
          >
            {KINDS.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        {chart.kind !== "histogram" && (
          <label class="field">
            along
            <select
              value={chart.x}
              onChange={(event) => chooseAll({ ...kept(chart), x: event.currentTarget.value })}
            >
              {columns.map((one) => (
                <option key={one.name}>{one.name}</option>
              ))}
            </select>
          </label>
        )}
        <label class="field">
          of
          <select
            value={chart.y}
            onChange={(event) => chooseAll({ ...kept(chart), y: event.currentTarget.value })}
          >
            {measures.map((one) => (
              <option key={one.name}>{one.name}</option>
            ))}
          </select>
        </label>
      </div>
      {chart.kind === "bar" && <Bars rows={rows} chart={chart} />}
      {chart.kind === "histogram" && <Histogram rows={rows} chart={chart} />}
      {chart.kind === "line" && <LineChart rows={rows} chart={chart} type={type} />}
      {source.about.rows > MOST_ROWS && (
        <p class="dim small">of the first {count(MOST_ROWS)} rows</p>
      )}
    </div>
  );
}
