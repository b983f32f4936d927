// Which chart fits the columns of a result. caudal/results/charts.py has the same rules.
import type { Column, Row } from "./kinds.ts";

export type ChartKind = "bar" | "line" | "histogram";
export interface Chart {
  kind: ChartKind;
  x: string; // empty for a histogram
  y: string;
}

const NUMBER = /^(u?int|float|double|half|decimal)/;
const TIME = /^(date|time|timestamp)/;
const TEXT = /^(large_)?(string|utf8)|^dictionary/;
const YEARLIKE = /(^|_)(year|decade|month|day|date|hour|week|quarter)s?($|_)/i;

export const isNumber = (column: Column): boolean => NUMBER.test(column.type);
const isTime = (column: Column): boolean => TIME.test(column.type);
const isText = (column: Column): boolean => TEXT.test(column.type);

/** Returns the chart to begin with; null if none makes sense. */
export function choose(columns: Column[]): Chart | null {
  const time = columns.find((one) => isTime(one) || (isNumber(one) && YEARLIKE.test(one.name)));
  const numbers = columns.filter((one) => isNumber(one) && one !== time);
  const measure = numbers.at(-1);
  if (!measure) return null;
  if (time) return { kind: "line", x: time.name, y: measure.name };
  const text = columns.find(isText);
  if (text) return { kind: "bar", x: text.name, y: measure.name };
  const [first, second] = numbers;
  if (first && second) return { kind: "bar", x: first.name, y: second.name };
  return { kind: "histogram", x: "", y: measure.name };
}

export const KINDS: ChartKind[] = ["bar", "line", "histogram"];

/** Returns the chart that an address names, where these columns have it; else the one to begin with. */
export function chosenChart(columns: Column[], kind: string, x: string, y: string): Chart | null {
  const first = choose(columns);
  if (!first) return null;
  return {
    kind: KINDS.find((one) => one === kind) ?? first.kind,
    x: columns.find((one) => one.name === x)?.name ?? first.x,
    y: columns.find((one) => one.name === y && isNumber(one))?.name ?? first.y,
  };
}

export interface Bin {
  from: number;
  to: number;
  count: number;
}

/** Cuts values into at most 30 bins of equal width. */
export function bins(values: number[], most = 30): Bin[] {
  if (!values.length) return [];
  let low = values[0] as number;
  let high = low;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const number =
    low === high ? 1 : Math.min(most, Math.max(5, Math.ceil(Math.sqrt(values.length))));
  const width = (high - low) / number || 1;
  const found = Array.from({ length: number }, (_, place) => ({
    from: low + place * width,
    to: low + (place + 1) * width,
    count: 0,
  }));
  for (const value of values) {
    const bin = found[Math.min(number - 1, Math.floor((value - low) / width))];
    if (bin) bin.count += 1;
  }
  return found;
}

/** The values of a column as numbers; dates become seconds since 1970, others are left out. */
export function numbers(rows: Row[], column: string): number[] {
  return rows.map((row) => asNumber(row[column])).filter((one) => Number.isFinite(one));
}

export function asNumber(value: unknown): number {
  if (typeof value === "number") return value;
  if (typeof value !== "string" || !value.trim()) return Number.NaN;
  const plain = Number(value);
  if (!Number.isNaN(plain)) return plain;
  return /^\d{4}-\d\d-\d\d/.test(value)
    ? Date.parse(value.includes(":") ? value.replace(" ", "T") : `${value}T00:00:00Z`) / 1000
    : Number.NaN;
}
