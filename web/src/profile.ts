// What the columns of a table are like: two SELECTs, which any place answers.
// Only aggregates that split over a cluster's batches are used there.
import type { Row, Value } from "./kinds.ts";
import type { Columns } from "./places.ts";

export const BINS = 20;
const NUMBER = /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL)\b[^[\]]*$/i;

export interface ColumnProfile {
  name: string;
  type: string;
  nulls: number;
  distinct: number | null; // about; null: not counted
  least: Value;
  most: Value;
  bins: number[]; // rows, from the least to the most value
}
export interface Profile {
  rows: number;
  columns: ColumnProfile[];
}
export interface Span {
  place: number;
  name: string;
  least: number;
  most: number;
}

export const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;
export const isNumeric = (type: string) => NUMBER.test(type);

export function countsSelect(table: string, columns: Columns, distinct: boolean): string {
  const parts = Object.keys(columns).flatMap((name, place) => {
    const column = quoted(name);
    const some = [`count(${column}) AS k${place}`, `min(${column}) AS l${place}`];
    some.push(`max(${column}) AS m${place}`);
    if (distinct) some.push(`approx_count_distinct(${column}) AS d${place}`);
    return some;
  });
  return `SELECT ${["count(*) AS n", ...parts].join(", ")} FROM ${quoted(table)}`;
}

/** The columns that have a histogram: numbers, more than one value, all finite. */
export function spans(columns: Columns, row: Row): Span[] {
  return Object.entries(columns).flatMap(([name, type], place) => {
    const [least, most] = [row[`l${place}`], row[`m${place}`]].map((one) =>
      one === null || one === undefined ? Number.NaN : Number(one),
    ) as [number, number];
    const fits = isNumeric(type) && Number.isFinite(least) && Number.isFinite(most) && least < most;
    return fits ? [{ place, name, least, most }] : [];
  });
}

export function binsSelect(table: string, found: Span[]): string {
  return found
    .map(({ place, name, least, most }) => {
      const share = `(CAST(${quoted(name)} AS DOUBLE) - ${literal(least)}) / ${literal(most - least)}`;
      const bin = `least(${BINS - 1}, greatest(0, CAST(floor(${share} * ${BINS}) AS INTEGER)))`;
      const from = `FROM ${quoted(table)} WHERE ${quoted(name)} IS NOT NULL`;
      return `SELECT ${place} AS place, ${bin} AS bin, count(*) AS n ${from} GROUP BY 2`;
    })
    .join(" UNION ALL ");
}

const literal = (value: number) => `CAST('${value}' AS DOUBLE)`;

export function profileOf(columns: Columns, row: Row, bins: Row[]): Profile {
  const counted = new Map<number, number[]>();
  for (const one of bins) {
    const place = Number(one.place);
    const some = counted.get(place) ?? new Array<number>(BINS).fill(0);
    some[Number(one.bin)] = Number(one.n);
    counted.set(place, some);
  }
  const rows = Number(row.n);
  return {
    rows,
    columns: Object.entries(columns).map(([name, type], place) => {
      const known = Number(row[`k${place}`]);
      const distinct = row[`d${place}`];
      return {
        name,
        type,
        nulls: rows - known,
        distinct: distinct === undefined ? null : Math.min(Number(distinct), known),
        least: row[`l${place}`] ?? null,
        most: row[`m${place}`] ?? null,
        bins: counted.get(place) ?? [],
      };
    }),
  };
}

/** A share in percent that never rounds a little to none, nor nearly all to all. */
export function percent(part: number, all: number): string {
  if (!all || !part) return "0 %";
  if (part === all) return "100 %";
  const share = (100 * part) / all;
  return share < 0.1 ? "< 0.1 %" : share > 99.9 ? "> 99.9 %" : `${share.toFixed(1)} %`;
}
