// The rows of an answer: scrolled page by page, sorted and filtered if there are not too many.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { said } from "./api.ts";
import { isNumber } from "./charts.ts";
import type { Column, Row, RowSource, Value } from "./kinds.ts";
import { chooseAll, option } from "./route.ts";
import { VirtualTable } from "./virtual.tsx";
import { count, shown } from "./words.ts";

const NO_CLIPBOARD = "browsers copy only from pages with https, or of this machine: download it";
const PAGE = 500;
const PAGES_KEPT = 20;
export const MOST_SORTED = 50_000; // rows that are fetched whole to be sorted or filtered

/** Compares two values: numbers by size, texts by locale, nulls last. */
export function compare(one: Value | undefined, other: Value | undefined): number {
  if (one === null || one === undefined) return other === null || other === undefined ? 0 : 1;
  if (other === null || other === undefined) return -1;
  if (typeof one === "number" && typeof other === "number") return one - other;
  return shown(one).localeCompare(shown(other), undefined, { numeric: true });
}

export function arranged(rows: Row[], filter: string, sort: string, down: boolean): Row[] {
  const wanted = filter.toLowerCase();
  const kept = wanted
    ? rows.filter((row) =>
        Object.values(row).some((one) => shown(one).toLowerCase().includes(wanted)),
      )
    : [...rows];
  if (sort) kept.sort((a, b) => (down ? -1 : 1) * compare(a[sort], b[sort]));
  return kept;
}

/** Keeps a few pages of rows, and forgets those that were not seen for longest. */
class Pages {
  private kept = new Map<number, Row[]>();
  private asked = new Set<number>();
  constructor(
    private source: RowSource,
    private onChange: (why: string) => void,
  ) {}

  row(place: number): Row | undefined {
    return this.kept.get(Math.floor(place / PAGE))?.[place % PAGE];
  }

  async need(first: number, last: number): Promise<void> {
    for (let page = Math.floor(first / PAGE); page * PAGE < last; page += 1) await this.fetch(page);
  }

  private async fetch(page: number): Promise<void> {
    const known = this.kept.get(page);
    if (known) {
      this.kept.delete(page);
      this.kept.set(page, known);
      return;
    }
    if (this.asked.has(page)) return;
    this.asked.add(page);
    try {
      this.kept.set(page, await this.source.rows(page * PAGE, PAGE));
      while (this.kept.size > PAGES_KEPT) this.kept.delete(this.kept.keys().next().value as number);
      this.onChange("");
    } catch (error) {
      this.onChange(said(error));
    } finally {
      this.asked.delete(page);
    }
  }
}

function Cell({ value, column }: { value: Value | undefined; column: Column }) {
  const text = shown(value);
  const kind = isNumber(column) ? "num" : "";
  if (value === null || value === undefined)
    return (
      <td class={kind}>
        <span class="null">{value === null ? "NULL" : "…"}</span>
      </td>
    );
  return (
    <td class={kind}>
      <span class="clip" dir="auto" title={text.length > 40 ? text : undefined}>
        {text}
      </span>
    </td>
  );
}

function asText(columns: Column[], rows: Row[]): string {
  const clean = (value: unknown) => shown(value).replace(/[\t\n\r]/g, " ");
  const lines = rows.map((row) => columns.map((one) => clean(row[one.name])).join("\t"));
  return [columns.map((one) => one.name).join("\t"), ...lines].join("\n");
}

/** Sort and filter of a grid; in the address where it is the grid of its page. */
function useArrangement(shared: boolean) {
  const [own, setOwn] = useState({ sort: "", filter: "" });
  const now = shared ? { sort: option("sort"), filter: option("filter") } : own;
  const change = (part: Partial<typeof own>) =>
    shared ? chooseAll(part) : setOwn({ ...own, ...part });
  const down = now.sort.startsWith("-");
  const column = down ? now.sort.slice(1) : now.sort;
  return { filter: now.filter, sort: { column, down }, change };
}

export function Grid({ source, shared = false }: { source: RowSource; shared?: boolean }) {
  const { about } = source;
  const [, redraw] = useState(0);
  const [why, setWhy] = useState("");
  const { filter, sort, change } = useArrangement(shared);
  const [whole, setWhole] = useState<Row[] | null>(null);
  const [copied, setCopied] = useState(false);
  const mounted = useRef(true);
  useEffect(
    () => () => {
      mounted.current = false;
    },
    [],
  );
  const pages = useMemo(
    () =>
      new Pages(source, (reason) => {
        if (!mounted.current) return;
        setWhy(reason);
        redraw((turn) => turn + 1);
      }),
    [source],
  );
  const able = about.rows <= MOST_SORTED;
  const active = filter !== "" || sort.column !== "";
  useEffect(() => {
    if (active && able && !whole)
      source.rows(0, about.rows).then(setWhole, (error) => setWhy(said(error)));
  }, [active, able, whole, source, about.rows]);
  const rows = useMemo(
    () => (active && whole ? arranged(whole, filter, sort.column, sort.down) : null),
    [active, whole, filter, sort.column, sort.down],
  );
  const total = rows ? rows.length : about.rows;
  const at = (place: number) => (rows ? rows[place] : pages.row(place));
  const turn = (column: string) =>
    change({ sort: sort.column !== column ? column : sort.down ? "" : `-${column}` });
  const copy = async () => {
    const chosen = rows ?? (await source.rows(0, Math.min(about.rows, MOST_SORTED)));
    if (!navigator.clipboard) return setWhy(NO_CLIPBOARD);
    await navigator.clipboard.writeText(asText(about.columns, chosen));
    setCopied(true);
    setTimeout(() => mounted.current && setCopied(false), 3000);
  };
  return (
    <div>
      <div class="row" style={{ marginBottom: ".6rem" }}>
        <span class="dim">
          {count(total)} {total === 1 ? "row" : "rows"}
          {rows && total !== about.rows ? ` of ${count(about.rows)}` : ""}
        </span>
        <label class="field">
          filter
          <input
            type="search"
            value={filter}
            disabled={!able}
            placeholder={able ? "" : `up to ${count(MOST_SORTED)} rows`}
            onInput={(event) => change({ filter: event.currentTarget.value })}
          />
        </label>
        <button type="button" onClick={() => copy().catch((error) => setWhy(said(error)))}>
          {copied ? "copied" : "copy"}
        </button>
        {!able && <span class="dim small">too many rows to sort here: ask for fewer with SQL</span>}
      </div>
      {why && <p class="notice bad">{why}</p>}
      <VirtualTable
        rows={total}
        columns={about.columns.length}
        label={`rows of ${about.query}`}
        most={480}
        onSpan={(span) => {
          if (!rows) pages.need(span.first, span.last);
        }}
        head={
          <tr>
            {about.columns.map((one) => (
              <th
                key={one.name}
                class={isNumber(one) ? "num" : ""}
                aria-sort={
                  sort.column !== one.name ? "none" : sort.down ? "descending" : "ascending"
                }
              >
                <button
                  type="button"
                  class="plain"
                  disabled={!able}
                  title={one.type}
                  onClick={() => turn(one.name)}
                >
                  {one.name} {sort.column === one.name ? (sort.down ? "▾" : "▴") : ""}
                </button>
              </th>
            ))}
          </tr>
        }
        row={(place) => (
          <tr key={place} aria-rowindex={place + 2}>
            {about.columns.map((one) => (
              <Cell key={one.name} column={one} value={at(place)?.[one.name]} />
            ))}
          </tr>
        )}
      />
    </div>
  );
}
